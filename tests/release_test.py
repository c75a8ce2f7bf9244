"""Checks that the released program runs on any Linux with glibc 2.34.

    tests/release_test.py build/release/postflight
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The loader is part of glibc; so is libm, which may yet become unavoidable.
LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 34)
DOCUMENTS = ["README.md", "docs/dependencies.md"]
# "The program is 1.4 MB", as docs say it, in units of 1,000,000 bytes.
SIZE_SENTENCE = re.compile(r"program\s+is\s+(\d+\.\d+)\s+MB")


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, Release.program],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


class Release(unittest.TestCase):
    program = None

    def test_needs_glibc_alone(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d")))
        self.assertIn("libc.so.6", needed)
        self.assertEqual(needed - LIBRARIES, set())

    def test_needs_no_newer_glibc(self):
        # Weak references too: the loader wants their versions to exist.
        text = readelf("--dyn-syms", "-V")
        versions = {tuple(map(int, version.split(".")))
                    for version in re.findall(r"GLIBC_([\d.]+\d)", text)}
        self.assertTrue(versions)
        newer = [".".join(map(str, version))
                 for version in sorted(versions) if version > NEWEST_GLIBC]
        symbols = [line for line in text.splitlines()
                   if any(line.split("@")[-1].startswith(f"GLIBC_{version}")
                          for version in newer)]
        self.assertFalse(newer, "\n" + "\n".join(symbols))
        self.assertEqual(
            re.findall(r"\S+@(?:GLIBC_PRIVATE|GLIBCXX\S+|CXXABI\S+|GCC\S+)",
                       text), [])

    def test_finds_libraries_where_the_system_does(self):
        self.assertEqual(re.findall(r"\((?:RPATH|RUNPATH)\).*", readelf("-d")),
                         [])

    # make and the Dockerfile install these and what they depend on, but not what
    # they recommend.
    @unittest.skipUnless(shutil.which("dpkg-query"), "this is not Debian")
    def test_every_archive_is_in_a_package_that_is_installed(self):
        build = (ROOT / "packages.txt").read_text().partition(
            "# section: test")[0]
        named = [line for line in build.splitlines()
                 if line and not line.startswith("#")]
        depends = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Package} ${Depends}\n", *named],
            stdout=subprocess.PIPE, text=True, check=True).stdout
        brought = set(re.findall(r"[\w.+-]+", depends))
        archives = [archive for path in ("CMakeLists.txt", "src/CMakeLists.txt")
                    for archive in re.findall(r"find_library\(\w+ (lib\w+\.a)",
                                              (ROOT / path).read_text())]
        self.assertIn("libz.a", archives)
        for archive in archives:
            owners = subprocess.run(["dpkg-query", "-S", f"*/{archive}"],
                                    stdout=subprocess.PIPE, text=True,
                                    check=True).stdout
            packages = {line.split(":")[0] for line in owners.splitlines()}
            self.assertTrue(packages & brought, f"{archive} of {packages}")

    def test_is_as_large_as_the_documents_say(self):
        size = pathlib.Path(self.program).stat().st_size / 1e6
        print(f"the program is {size:.2f} MB")
        said = {}
        for name in DOCUMENTS:
            path = ROOT / name
            if path.exists():
                for figure in SIZE_SENTENCE.findall(path.read_text()):
                    said[name] = float(figure)
        self.assertTrue(said, f"no document says: The program is {size:.1f} MB")
        for name, figure in said.items():
            self.assertLessEqual(
                abs(figure - size), size / 10,
                f"{name} says {figure} MB, but the program is {size:.2f} MB")


if __name__ == "__main__":
    Release.program = sys.argv.pop()
    unittest.main()
