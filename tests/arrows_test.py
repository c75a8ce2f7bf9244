"""Reads the #includes of src/ and fails on one that points up, or on a cycle.

The tables below are the rules; src/README.md explains them.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the files of each folder may include, besides those of the same folder. A
# sub-folder has its own entry; a name that ends in a slash stands for a folder
# with all its sub-folders.
BELOW = {
    "base": [],
    "pickle": ["base"],
    "pickle/names": ["base", "pickle"],
    "pickle/text": ["base", "pickle"],
    "pickle/writing": ["base", "pickle"],
    "pickle/audit": ["base", "pickle", "pickle/names", "pickle/text"],
    "json": ["base", "pickle/"],
    "stream": ["base"],
    "stream/tar": ["base", "stream"],
    "stream/extension": ["base", "stream"],
    "stream/codec": ["base", "stream", "stream/extension"],
    "flight/model": ["base", "pickle/", "json", "stream/"],
    "flight/matching": ["base", "flight/model"],
    "flight/diagnosis": ["base", "flight/model", "flight/matching"],
    "flight/classic": ["base", "pickle/", "flight/model", "flight/matching"],
    "joblog": ["base", "stream/", "flight/model"],
    "checkpoint/zip": ["base", "stream/codec"],
    "checkpoint/model": ["base", "pickle/", "json", "stream/", "checkpoint/zip"],
    "checkpoint/tensor": ["base", "json", "checkpoint/zip", "checkpoint/model"],
    "checkpoint/numpy": ["base", "checkpoint/zip", "checkpoint/model"],
    "checkpoint/torch": ["base", "pickle/", "json", "stream/", "checkpoint/zip",
                         "checkpoint/model", "checkpoint/numpy"],
    "checkpoint/safetensors": ["base", "json", "checkpoint/model"],
    "checkpoint/verification": ["base", "pickle/", "json", "checkpoint/zip",
                                "checkpoint/torch",
                                "checkpoint/model", "checkpoint/tensor"],
    "checkpoint/comparison": ["base", "pickle/", "json", "checkpoint/model",
                              "checkpoint/tensor", "checkpoint/verification",
                              "checkpoint"],
    "checkpoint/writing": ["base", "pickle/", "json", "stream/", "checkpoint/zip",
                           "checkpoint/model", "checkpoint/tensor",
                           "checkpoint"],
    "checkpoint/delta": ["base", "pickle/", "json", "stream/",
                         "checkpoint/model", "checkpoint/tensor",
                         "checkpoint/torch", "checkpoint/comparison",
                         "checkpoint/writing", "checkpoint"],
    "checkpoint/gguf": ["base", "checkpoint/model"],
    "checkpoint/joining": ["base", "pickle/", "checkpoint/zip",
                           "checkpoint/model", "checkpoint/tensor"],
    "checkpoint/dcp": ["base", "pickle/", "json", "stream/", "checkpoint/zip",
                       "checkpoint/model", "checkpoint/tensor",
                       "checkpoint/torch", "checkpoint/safetensors"],
    "checkpoint": ["base", "pickle/", "json", "stream/", "checkpoint/"],
    # Loaded into other programs: it includes nothing of ours.
    "profile/agent": [],
    "profile/process": ["base"],
    "profile/log": ["base"],
    "profile/native": ["base", "profile/process"],
    "profile/python": ["base", "profile/agent", "profile/process",
                       "profile/native"],
    "profile/phase": ["base", "profile/agent"],
    "profile/engine": ["base", "profile/agent", "profile/process",
                       "profile/log", "profile/native", "profile/python",
                       "profile/phase"],
    "profile/compile": ["base", "profile/process", "profile/log",
                        "profile/phase", "profile/engine"],
    "doctor": ["base", "flight/model"],
    "stacks": ["base", "json", "pickle/", "flight/model", "profile/"],
    "report": ["base", "json", "pickle/", "stream/"],
    "report/pickle": ["base", "json", "pickle/", "checkpoint/", "report"],
    "report/checkpoint": ["base", "json", "pickle/", "checkpoint/", "report"],
    "report/flight": ["base", "json", "pickle/", "flight/", "joblog", "stacks",
                      "report", "report/stacks"],
    "report/classic": ["base", "json", "pickle/", "flight/", "report"],
    "report/profile": ["base", "json", "profile/", "report"],
    "report/doctor": ["base", "json", "doctor", "report"],
    "report/stacks": ["base", "json", "stacks", "report"],
    "api": ["base", "json", "pickle/", "stream/", "checkpoint/", "flight/",
            "joblog", "profile/", "stacks", "doctor"],
    "library": ["api", "base", "pickle/", "json", "stream/", "flight/",
                "checkpoint/", "report/", "profile/compile", "profile/phase"],
    "cli/arguments": ["base", "report"],
    "cli": ["api", "base", "pickle/", "json", "stream/", "flight/", "joblog",
            "checkpoint/", "profile/", "stacks", "doctor", "report/",
            "cli/arguments"],
    "cli/ckpt": ["api", "base", "pickle/", "json", "stream/", "checkpoint/", "report/",
                 "cli", "cli/arguments"],
}

# In which folders a third-party header may be included, and only in .cc files.
THIRD_PARTY = {
    "nlohmann/": ["json"],
    "re2/": ["base"],
    "openssl/": ["checkpoint", "stream"],
    "sqlite3.h": ["report"],
    "zlib.h": ["checkpoint", "stream"],
    "zstd": ["stream"],
    "lz4frame.h": ["stream"],
    "archive.h": ["stream"],
    "archive_entry.h": ["stream"],
    "xxhash.h": ["stream"],
    "elfutils/": ["profile"],
    "libelf.h": ["profile"],
    "dwarf.h": ["profile"],
    # Ours, but for plug-ins, and in C.
    "postflight_transform.h": ["stream"],
}

# The C interface, in headers too.
INTERFACE = {"postflight/postflight.h": "library"}

# These may appear in any file, headers too.
VOCABULARY = ("fmt/", "tl/expected.hpp")

# System headers beyond the standard library, whose own headers have neither a
# folder nor a suffix.
SYSTEM = ("sys/", "linux/", "asm/")
SYSTEM_FILES = {
    "cxxabi.h", "dirent.h", "dlfcn.h", "elf.h", "emmintrin.h", "fcntl.h",
    "glob.h", "immintrin.h", "link.h", "poll.h", "pthread.h", "pwd.h", "sched.h", "signal.h",
    "spawn.h", "termios.h", "time.h", "ucontext.h", "unistd.h",
}

HEADER_LINES = 250
SOURCE_LINES = 600

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_in(room, below):
    """Whether `room` is `below` or, where that ends in a slash, in it."""
    return room == below or (below.endswith("/")
                             and (room + "/").startswith(below))


def include_problem(place, quote, name):
    """Says what is wrong with one #include, or returns None."""
    room = place.parent.as_posix()
    folder = place.parts[0]
    is_header = place.suffix == ".h"
    third_party = [prefix for prefix in THIRD_PARTY if name.startswith(prefix)]
    if third_party:
        places = THIRD_PARTY[third_party[0]]
        if folder not in places:
            return f"{name} belongs to {' and '.join(places)} only"
        if is_header:
            return f"{name} may be included in .cc files only"
        return None
    if quote == '"':
        target = pathlib.PurePosixPath(name).parent.as_posix()
        if target not in BELOW:
            return f'"{name}" is not written as seen from src/'
        if target != room and not any(is_in(target, below)
                                      for below in BELOW[room]):
            return f"{room} may not include from {target}"
        return None
    if name in INTERFACE and folder != INTERFACE[name]:
        return f"{name} belongs to {INTERFACE[name]} only"
    if (name.startswith(VOCABULARY + SYSTEM) or name in SYSTEM_FILES
            or name in INTERFACE
            or re.fullmatch(r"[a-z_]+", name)):
        return None
    return f"<{name}> is unknown: name it in tests/arrows_test.py"


def include_cycles(includes):
    """Finds cycles; `includes` maps a name to the set of names it includes.

    Returns each strongly connected component of two or more names, sorted.
    """
    order, reached = [], set()
    for root in sorted(includes):
        stack = [(root, iter(sorted(includes[root])))]
        while stack:
            name, rest = stack[-1]
            reached.add(name)
            below = next((n for n in rest if n not in reached), None)
            if below is None:
                stack.pop()
                if name not in order:
                    order.append(name)
            else:
                stack.append((below, iter(sorted(includes.get(below, ())))))
    included_by = {}
    for name, targets in includes.items():
        for target in targets:
            included_by.setdefault(target, set()).add(name)
    cycles, assigned = [], set()
    for name in reversed(order):
        component, todo = set(), [name]
        while todo:
            one = todo.pop()
            if one not in assigned:
                assigned.add(one)
                component.add(one)
                todo.extend(included_by.get(one, ()))
        if len(component) > 1:
            cycles.append(sorted(component))
    return sorted(cycles)


def problems(src):
    """Lists every broken rule below the folder `src`."""
    found = []
    readme = src / "README.md"
    map_text = readme.read_text() if readme.exists() else ""
    files = sorted(path for path in src.rglob("*")
                   if path.suffix in (".h", ".cc"))
    for room in sorted({path.relative_to(src).parent.as_posix()
                        for path in files}):
        if room not in BELOW:
            found.append(f"{room}: name it in tests/arrows_test.py")
        if f"`{room}`" not in map_text:
            found.append(f"{room}: src/README.md has no paragraph on it")
    # A header and its .cc file are one node.
    includes = {}
    for path in files:
        place = path.relative_to(src)
        if place.parent.as_posix() not in BELOW:
            continue
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
                name = place.with_suffix("").as_posix()
                target = include.group(2).removesuffix(".h")
                if include.group(1) == '"' and target != name:
                    includes.setdefault(name, set()).add(target)
    for cycle in include_cycles(includes):
        found.append("include cycle: " + ", ".join(cycle))
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
            (src / "README.md").write_text("`base` `pickle` `checkpoint/zip` `cli` `profile/agent`")
            return problems(src)

    def test_accepts_arrows_that_point_down(self):
        self.assertEqual(self.found({
            "checkpoint/zip/end.cc": '#include <zlib.h>\n',
            "cli/program.cc": '#include "base/file.h"\n'
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
            self.found({"pickle/value.h": '#include "checkpoint/zip/end.h"\n'}),
            ["pickle/value.h:1: pickle may not include from checkpoint/zip"])

    def test_finds_a_library_outside_its_folder(self):
        self.assertEqual(
            self.found({"pickle/value.cc": "#include <zlib.h>\n"}),
            ["pickle/value.cc:1: zlib.h belongs to checkpoint and stream only"])

    def test_finds_a_library_in_a_header(self):
        self.assertEqual(
            self.found({"checkpoint/zip/end.h": "#include <zlib.h>\n"}),
            ["checkpoint/zip/end.h:1: zlib.h may be included in .cc files only"])

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

    def test_finds_an_arrow_up_to_the_folder_itself(self):
        self.assertEqual(
            self.found({"checkpoint/zip/end.cc": '#include "checkpoint/folder.h"'}),
            ["checkpoint/zip/end.cc:1: checkpoint/zip may not include from "
             "checkpoint"])

    def test_finds_what_the_agent_includes_of_ours(self):
        self.assertEqual(
            self.found({"profile/agent/agent.cc": '#include "base/file.h"'}),
            ["profile/agent/agent.cc:1: profile/agent may not include from base"])

    def test_finds_a_cycle_of_includes(self):
        self.assertEqual(
            self.found({"base/a.h": '#include "base/b.h"\n',
                        "base/b.h": "", "base/b.cc": '#include "base/c.h"\n',
                        "base/c.cc": '#include "base/a.h"\n',
                        "base/d.h": '#include "base/a.h"\n'}),
            ["include cycle: base/a, base/b, base/c"])

    def test_finds_files_that_are_too_long(self):
        self.assertEqual(
            self.found({"base/file.h": "\n" * 251, "base/file.cc": "\n" * 600,
                        "base/long.cc": "\n" * 601}),
            ["base/file.h: 251 lines are more than 250; "
             "find the second noun and move it out",
             "base/long.cc: 601 lines are more than 600; "
             "find the second noun and move it out"])


if __name__ == "__main__":
    unittest.main()
