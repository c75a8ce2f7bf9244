"""Checks what libpostflight.so exports and needs.

    tests/library/abi_test.py build/release/libpostflight.so
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 34)


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, Abi.library],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def listed():
    """The versions of src/library/exports.map and the functions of each."""
    text = re.sub(r"#.*", "",
                  (ROOT / "src/library/exports.map").read_text())
    return {version: set(re.findall(r"(\w+);", functions))
            for version, functions in re.findall(
                r"(POSTFLIGHT_[\d.]+)\s*\{\s*global:(.*?)(?:local:|\})", text,
                re.DOTALL)}


def declared():
    text = re.sub(r"/\*.*?\*/", "",
                  (ROOT / "include/postflight/postflight.h").read_text(),
                  flags=re.DOTALL)
    text = re.sub(r"typedef[^;{]*;", "", text)
    return set(re.findall(r"\b(postflight_\w+)\(", text))


class Abi(unittest.TestCase):
    library = None

    def test_exports_the_listed_functions_under_their_versions(self):
        exported = {}
        for line in readelf("--dyn-syms").splitlines():
            fields = line.split()
            if len(fields) < 8 or not fields[6].isalnum() or \
                    fields[6] in ("UND", "Ndx"):
                continue
            name, _, version = fields[7].partition("@@")
            if fields[6] == "ABS" and name.startswith("POSTFLIGHT_"):
                continue  # the version itself
            exported.setdefault(version, set()).add(name)
        self.assertEqual(exported, listed())

    def test_lists_what_the_header_declares(self):
        self.assertEqual(set().union(*listed().values()), declared())

    def test_needs_glibc_alone(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d")))
        self.assertIn("libc.so.6", needed)
        self.assertEqual(needed - LIBRARIES, set())

    def test_needs_no_newer_glibc(self):
        text = readelf("--dyn-syms", "-V")
        versions = {tuple(map(int, version.split(".")))
                    for version in re.findall(r"GLIBC_([\d.]+\d)", text)}
        self.assertTrue(versions)
        self.assertEqual(
            [version for version in versions if version > NEWEST_GLIBC], [])
        self.assertEqual(
            re.findall(r"\S+@(?:GLIBC_PRIVATE|GLIBCXX\S+|CXXABI\S+|GCC\S+)",
                       text), [])

    def test_its_code_is_not_changed_when_it_is_loaded(self):
        dynamic = readelf("-d")
        self.assertIn("(SONAME)", dynamic)
        self.assertNotIn("TEXTREL", dynamic)
        self.assertNotIn("(RPATH)", dynamic)
        self.assertNotIn("(RUNPATH)", dynamic)

    def test_the_headers_compile_alone(self):
        headers = sorted((ROOT / "include").rglob("*.h"))
        self.assertGreater(len(headers), 5)
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
                  "-fsyntax-only", f"-I{ROOT / 'include'}"]
        for header in headers:
            name = header.relative_to(ROOT / "include").as_posix()
            text = f"#include <{name}>\nint main() {{ return 0; }}\n"
            languages = [["c++", "-std=c++17", "-xc++"]]
            if 'extern "C"' in header.read_text():
                languages.append(["cc", "-std=c11", "-xc"])
            for language in languages:
                with self.subTest(header=name, language=language[0]):
                    done = subprocess.run(
                        [*language, *strict, "-"], input=text, text=True,
                        stderr=subprocess.PIPE)
                    self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    Abi.library = sys.argv.pop()
    unittest.main()
