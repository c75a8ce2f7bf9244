"""Makes the wheel: the package, with the library, the program and headers.

    python/make_wheel.py build/release build/wheel

One wheel is for all Pythons from 3.9 on, and for x86-64 Linux with glibc 2.34.
It needs nothing but the standard library, and the same input gives the same
bytes.
"""

import base64
import hashlib
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TAG = "py3-none-manylinux_2_34_x86_64"
TIME = (1980, 1, 1, 0, 0, 0)

# Programs that others are looked up by. They lie in a folder of their own, so
# that they hide nothing unless that folder is put on PATH.
COMPATIBILITY = {"torchfrtrace": "fr-trace"}
SCRIPT = '''#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/../bin/postflight" {command} "$@"
'''

METADATA = '''Metadata-Version: 2.1
Name: postflight
Version: {version}
Summary: Says what happened to a distributed PyTorch job
License: {license}
Requires-Python: >=3.9
Classifier: Programming Language :: Python :: 3
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{description}
'''


def stripped(path, folder):
    """A binary without its symbols, which are most of its size."""
    target = pathlib.Path(folder) / path.name
    subprocess.run(["strip", "--strip-unneeded", "-o", target, path],
                   check=True)
    return target.read_bytes()


def phase_module():
    """The module that launched programs import, which the program has inside."""
    text = (ROOT / "src/profile/phase/helper.cc").read_text()
    return re.search(r'kModule =\s*R"py\((.*?)\)py"', text, re.DOTALL).group(1)


def contents(build, version):
    """The files of the wheel: name, bytes, and whether it is a program."""
    package = ROOT / "python/postflight"
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            yield f"postflight/{path.relative_to(package)}", path.read_bytes(), \
                False
    yield "postflight/_phase_module.py", phase_module().encode(), False
    with tempfile.TemporaryDirectory() as folder:
        library = (build / "libpostflight.so.0").resolve()
        yield "postflight/lib/libpostflight.so.0", stripped(library, folder), \
            True
        yield "postflight/bin/postflight", stripped(build / "postflight",
                                                    folder), True
    include = ROOT / "include"
    for path in sorted(include.rglob("*.h")):
        yield (f"postflight/include/{path.relative_to(include)}",
               path.read_bytes(), False)
    for name, command in sorted(COMPATIBILITY.items()):
        yield (f"postflight/compatibility/{name}",
               SCRIPT.format(command=command).encode(), True)
    yield ("postflight/compatibility/strobeclient",
           (ROOT / "contrib/bin/strobeclient").read_bytes(), True)
    description = (ROOT / "docs/python.md").read_text()
    license = (ROOT / "LICENSE").read_text()
    name = re.sub(r"\s+", " ", license.split("\n", 1)[0]).strip()
    info = f"postflight-{version}.dist-info"
    yield f"{info}/METADATA", METADATA.format(
        version=version, license=name, description=description).encode(), False
    yield f"{info}/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: postflight\nRoot-Is-Purelib: false\n"
        f"Tag: {TAG}\n").encode(), False
    yield f"{info}/entry_points.txt", (
        b"[console_scripts]\npostflight = postflight.__main__:main\n"), False
    yield f"{info}/LICENSE", license.encode(), False
    yield f"{info}/THIRD_PARTY_NOTICES.md", (
        ROOT / "THIRD_PARTY_NOTICES.md").read_bytes(), False


def digest(data):
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + found.rstrip(b"=").decode()


def main(build, output):
    text = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"project\(postflight VERSION ([\d.]+)", text).group(1)
    here = (ROOT / "python/postflight/__init__.py").read_text()
    if f'__version__ = "{version}"' not in here:
        sys.exit(f"python/postflight/__init__.py is not of version {version}")
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"postflight-{version}-{TAG}.whl"
    record = []
    unfinished = wheel.with_suffix(".new")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, runs in contents(build, version):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if runs else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data)
            record.append(f"{name},{digest(data)},{len(data)}")
        name = f"postflight-{version}.dist-info/RECORD"
        record.append(f"{name},,")
        entry = zipfile.ZipInfo(name, TIME)
        entry.external_attr = (stat.S_IFREG | 0o644) << 16
        archive.writestr(entry, "\n".join(record) + "\n")
    unfinished.replace(wheel)
    print(wheel)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
