"""Reads the #includes of src/ and fails on one that points up.

The tables below are the rules; src/README.md tells them in words.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each folder may include from, besides itself.
BELOW = {
    "base": [],
    "pickle": ["base"],
    "json": ["base", "pickle"],
    "stream": ["base"],
    "flight": ["base", "pickle", "json", "stream"],
    "checkpoint": ["base", "pickle", "json", "stream"],
    "profile": ["base"],
    "report": ["base", "pickle", "stream", "flight", "checkpoint", "profile"],
    "cli": ["base", "pickle", "stream", "flight", "checkpoint", "profile",
            "report"],
}

# Where a third-party header may be included, and then only in a .cc file: in
# these folders, or where it takes long to compile, only in these files.
THIRD_PARTY = {
    "CLI/": ["cli/command_arguments.cc", "cli/declared.cc", "cli/program.cc"],
    "nlohmann/": ["json"],
    "re2/": ["base"],
    "openssl/": ["checkpoint", "stream"],
    "sqlite3.h": ["report"],
    "zlib.h": ["checkpoint", "stream"],
    "zstd": ["stream"],
    "lz4frame.h": ["stream"],
    "xxhash.h": ["stream"],
    "elfutils/": ["profile"],
    "libelf.h": ["profile"],
    "dwarf.h": ["profile"],
    # Ours, but for plug-ins, and in C.
    "postflight_transform.h": ["stream"],
}

# These may appear in any file, headers too.
VOCABULARY = ("fmt/", "tl/expected.hpp")

# What the system has beyond the standard library, whose own headers have
# neither a folder nor a suffix.
SYSTEM = ("sys/", "linux/", "asm/")
SYSTEM_FILES = {
    "cxxabi.h", "dirent.h", "dlfcn.h", "elf.h", "emmintrin.h", "fcntl.h",
    "glob.h", "immintrin.h", "link.h", "poll.h", "pthread.h", "sched.h", "signal.h",
    "spawn.h", "termios.h", "time.h", "ucontext.h", "unistd.h",
}

HEADER_LINES = 150
SOURCE_LINES = 600

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def include_problem(place, quote, name):
    """Says what is wrong with one #include, or returns None."""
    folder = place.parts[0]
    is_header = place.suffix == ".h"
    third_party = [prefix for prefix in THIRD_PARTY if name.startswith(prefix)]
    if third_party:
        places = THIRD_PARTY[third_party[0]]
        if folder not in places and str(place) not in places:
            return f"{name} belongs to {' and '.join(places)} only"
        if is_header:
            return f"{name} may be included in .cc files only"
        return None
    if quote == '"':
        target = name.split("/")[0]
        if "/" not in name or target not in BELOW:
            return f'"{name}" is not written as seen from src/'
        if target != folder and target not in BELOW[folder]:
            return f"{folder} may not include from {target}"
        return None
    if (name.startswith(VOCABULARY + SYSTEM) or name in SYSTEM_FILES
            or re.fullmatch(r"[a-z_]+", name)):
        return None
    return f"<{name}> is unknown: name it in tests/arrows_test.py"


def problems(src):
    """Lists every broken rule below the folder `src`."""
    found = []
    readme = src / "README.md"
    told = readme.read_text() if readme.exists() else ""
    places = {}
    files = sorted(path for path in src.rglob("*")
                   if path.suffix in (".h", ".cc"))
    for folder in sorted({path.relative_to(src).parts[0] for path in files}):
        if folder not in BELOW:
            found.append(f"{folder}: name it in tests/arrows_test.py")
        if f"`{folder}`" not in told:
            found.append(f"{folder}: src/README.md has no paragraph on it")
    for path in files:
        place = path.relative_to(src)
        folder = place.parts[0]
        if folder not in BELOW:
            continue
        other = places.setdefault(place.name, place)
        if other != place:
            found.append(f"{place}: {other} has the same name")
        lines = path.read_text().splitlines()
        is_header = path.suffix == ".h"
        most = HEADER_LINES if is_header else SOURCE_LINES
        if len(lines) > most:
            found.append(f"{place}: {len(lines)} lines are more than {most}; "
                         "find the second noun and move it out")
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            if include:
                problem = include_problem(place, *include.groups())
                if problem:
                    found.append(f"{place}:{number}: {problem}")
    return found


class SourceTree(unittest.TestCase):
    def test_keeps_the_rules(self):
        found = problems(ROOT / "src")
        if found:
            self.fail("\n" + "\n".join(found))


class Checker(unittest.TestCase):
    """Each rule, broken on purpose."""

    def found(self, files):
        with tempfile.TemporaryDirectory() as folder:
            src = pathlib.Path(folder)
            for name, text in files.items():
                path = src / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            (src / "README.md").write_text("`base` `pickle` `checkpoint` `cli`")
            return problems(src)

    def test_accepts_arrows_that_point_down(self):
        self.assertEqual(self.found({
            "cli/program.cc": '#include <CLI/CLI.hpp>\n#include "base/file.h"\n'
                              '#include "cli/show.h"\n',
            "pickle/value.h": '#include <string_view>\n#include <sys/mman.h>\n'
                              '#include <fmt/format.h>\n',
        }), [])

    def test_finds_an_arrow_that_points_up(self):
        self.assertEqual(
            self.found({"base/file.cc": '\n#include "pickle/value.h"\n'}),
            ["base/file.cc:2: base may not include from pickle"])

    def test_finds_an_arrow_between_neighbours(self):
        self.assertEqual(
            self.found({"pickle/value.h": '#include "checkpoint/zip.h"\n'}),
            ["pickle/value.h:1: pickle may not include from checkpoint"])

    def test_finds_a_library_outside_its_folder(self):
        self.assertEqual(
            self.found({"pickle/value.cc": "#include <zlib.h>\n"}),
            ["pickle/value.cc:1: zlib.h belongs to checkpoint and stream only"])

    def test_finds_a_library_in_a_header(self):
        self.assertEqual(
            self.found({"checkpoint/zip.h": "#include <zlib.h>\n"}),
            ["checkpoint/zip.h:1: zlib.h may be included in .cc files only"])

    def test_finds_a_library_outside_its_files(self):
        self.assertEqual(
            self.found({"cli/main.cc": "#include <CLI/CLI.hpp>\n"}),
            ["cli/main.cc:1: CLI/CLI.hpp belongs to cli/command_arguments.cc and "
             "cli/declared.cc and cli/program.cc only"])

    def test_finds_a_library_it_does_not_know(self):
        self.assertEqual(
            self.found({"base/file.cc": "#include <boost/any.hpp>\n"}),
            ["base/file.cc:1: <boost/any.hpp> is unknown: "
             "name it in tests/arrows_test.py"])

    def test_finds_an_include_beside_the_file(self):
        self.assertEqual(
            self.found({"base/file.cc": '#include "file.h"\n'}),
            ['base/file.cc:1: "file.h" is not written as seen from src/'])

    def test_finds_a_folder_nobody_knows(self):
        self.assertEqual(
            self.found({"utils/misc.h": ""}),
            ["utils: name it in tests/arrows_test.py",
             "utils: src/README.md has no paragraph on it"])

    def test_finds_two_files_of_one_name(self):
        self.assertEqual(
            self.found({"base/value.h": "", "pickle/value.h": ""}),
            ["pickle/value.h: base/value.h has the same name"])

    def test_finds_files_that_are_too_long(self):
        self.assertEqual(
            self.found({"base/file.h": "\n" * 151, "base/file.cc": "\n" * 600,
                        "base/long.cc": "\n" * 601}),
            ["base/file.h: 151 lines are more than 150; "
             "find the second noun and move it out",
             "base/long.cc: 601 lines are more than 600; "
             "find the second noun and move it out"])


if __name__ == "__main__":
    unittest.main()
