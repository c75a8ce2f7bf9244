#!/usr/bin/python3
"""Compares fr-trace with what torchfrtrace said of real dumps.

    tests/oracle/fr_trace_test.py build/dev/postflight

tests/data/flight/*/torchfrtrace holds torchfrtrace's own output and databases.
Where it was right about a folder (torchfrtrace_right in truth.json), ours must
say the same, but for the order of ranks in a set and for lines that it prints
only through bugs B10 and B15 of docs/differences.md. Everywhere, whoever ours
accuses must be at fault.
"""

import json
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLIGHT = ROOT / "tests/data/flight"
PROGRAM = None

# How each of torchfrtrace's outputs was made.
FLAGS = {
    "default": [],
    "allow_incomplete": ["--allow-incomplete-ranks"],
    "verbose": ["-v"],
    "entries": ["-j"],
    "entries_verbose": ["-j", "-v", "--print_stack_trace"],
}
# What torchfrtrace prints only through B10 and B15.
THEIR_BUGS = re.compile(
    r"Rank \d+ does not have a coalesced end\.|No errors found for this "
    r"collective entry, .*")
# What only we print.
OUR_LINES = re.compile(
    r"First collective not completed: .*|\(--allow-incomplete-ranks .*")


def folders():
    for truth in sorted(FLIGHT.glob("*/truth.json")):
        yield truth.parent, json.loads(truth.read_text())


def run(folder, flags):
    """All lines on stderr, and the exit code as torchfrtrace's files have it."""
    done = subprocess.run(
        [PROGRAM, "fr-trace", "-p", folder.name.split("_")[0] + "_trace_rank_",
         *flags, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout == "", done.stdout
    return done.stderr.splitlines() + [f"exit {done.returncode}"]


def sorted_set(match):
    return "{" + ", ".join(sorted(match[1].split(", "))) + "}"


def sorted_errors(line):
    head = "error msg: "
    if not line.startswith(head):
        return line
    return head + ", ".join(
        sorted(re.split(r", (?=Culprit rank )", line[len(head):])))


def without_traceback_ids(lines):
    """Their traceback_id is always 0; ours joins the tracebacks."""
    if "NCCLCalls" not in lines:
        return lines
    header = lines.index("NCCLCalls") + 1
    end = lines[header].index("traceback_id") + len("traceback_id")
    start = end - len("traceback_id")
    return [line if i <= header + 1 or line.startswith("exit")
            else line[:start] + " " * (end - start) + line[end:]
            for i, line in enumerate(lines)]


def normal(lines):
    lines = [line for line in lines
             if not THEIR_BUGS.fullmatch(line) and not OUR_LINES.fullmatch(line)]
    lines = without_traceback_ids(lines)
    text = "\n".join(sorted_errors(line) for line in lines)
    text = re.sub(r"\{([^{}:]*)\}", sorted_set, text)
    text = re.sub(r"files in [0-9.e-]+s", "files in Ns", text)
    return re.sub(r"0x[0-9a-f]{12}", "0xADDRESS", text).split("\n")


class Row:
    """Stands for any of torch's classes."""

    def __new__(cls, *fields):
        row = super().__new__(cls)
        row.fields = fields
        return row

    def __setstate__(self, state):
        self.fields = tuple(sorted(state.items(), key=str))

    def __class_getitem__(cls, item):
        return cls, item

    def __eq__(self, other):
        return type(self) is type(other) and self.fields == other.fields

    def __repr__(self):
        return f"{type(self).__name__}{self.fields}"


class MatchState:
    """Python loads its members by their names."""
    def __getattr__(self, name):
        return name


class Unpickler(pickle.Unpickler):
    classes = {}

    def find_class(self, module, name):
        if module == "torch.distributed.flight_recorder.components.types":
            if name == "MatchState":
                return MatchState()
            return self.classes.setdefault(name, type(name, (Row,), {}))
        if (module, name) in {
                ("types", "GenericAlias"), ("_operator", "getitem"),
                ("_operator", "or_"), ("_functools", "reduce"),
                ("builtins", "getattr"), ("builtins", "list"),
                ("builtins", "dict"), ("builtins", "set"), ("builtins", "int"),
                ("builtins", "str"), ("builtins", "bool"),
                ("builtins", "type")}:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


# type | None fails for our stand-ins, so it is kept as a tuple.
class OurUnpickler(Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("_functools", "reduce"):
            return lambda function, types: ("union", *types)
        return super().find_class(module, name)


def load(path):
    with open(path, "rb") as file:
        types, database = OurUnpickler(file).load()
    names = ["groups", "memberships", "tracebacks", "collectives", "ncclcalls"]
    return types, dict(zip(names, database.fields, strict=True))


def without_traceback_id(call):
    return call.fields[:4] + call.fields[5:]


class FrTrace(unittest.TestCase):
    maxDiff = None

    def test_says_what_torchfrtrace_says_where_it_is_right(self):
        compared = 0
        for folder, truth in folders():
            if not truth.get("torchfrtrace_right"):
                continue
            for name, flags in FLAGS.items():
                with self.subTest(folder=folder.name, output=name):
                    theirs = (folder / f"torchfrtrace/{name}.txt").read_text()
                    self.assertEqual(normal(theirs.splitlines()),
                                     normal(run(folder, flags)))
                    compared += 1
        self.assertEqual(compared, 75)

    def test_prints_the_same_entries(self):
        for folder, truth in folders():
            for name in ["entries", "entries_verbose"]:
                path = folder / f"torchfrtrace/{name}.txt"
                # B1: it drops good entries where rings wrapped.
                if truth["case"] == "wrapped" or not path.exists():
                    continue
                with self.subTest(folder=folder.name, output=name):
                    self.assertEqual(normal(path.read_text().splitlines()),
                                     normal(run(folder, FLAGS[name])))

    def test_accuses_nobody_who_is_not_at_fault(self):
        for folder, truth in folders():
            with self.subTest(folder=folder.name):
                said = "\n".join(run(folder, ["--allow-incomplete-ranks"]))
                accused = {int(rank) for rank in
                           re.findall(r"Culprit rank (\d+)", said)}
                for ranks in re.findall(
                        r"(?:missing ranks: |dumps from ranks \()\{(.*)\}",
                        said):
                    accused.update(int(rank) for rank in ranks.split(", "))
                if "Input/output mismatch" in said:  # it names no pair
                    accused.update(truth["culprits"])
                wanted = set(truth["culprits"])
                if truth["kind"] == "straggler":  # nothing is stuck
                    wanted = set()
                self.assertEqual(accused - set(truth.get("no_dump", [])),
                                 wanted - set(truth.get("no_dump", [])))

    def test_writes_their_database(self):
        compared = 0
        for folder, truth in folders():
            for path in sorted((folder / "torchfrtrace").glob("*.db")):
                if not truth.get("torchfrtrace_right"):
                    continue
                with self.subTest(folder=folder.name, database=path.name), \
                        tempfile.TemporaryDirectory() as temporary:
                    output = pathlib.Path(temporary) / "ours.db"
                    run(folder, FLAGS[path.stem] + ["-o", str(output)])
                    types, theirs = load(path)
                    our_types, ours = load(output)
                    self.assertEqual(types, our_types)
                    for table in ["groups", "memberships", "collectives"]:
                        self.assertEqual(theirs[table], ours[table], table)
                    self.assertEqual(
                        [without_traceback_id(c) for c in theirs["ncclcalls"]],
                        [without_traceback_id(c) for c in ours["ncclcalls"]])
                    compared += 1
        self.assertEqual(compared, 43)

    def test_joins_tracebacks(self):
        for folder, _ in folders():
            with self.subTest(folder=folder.name), \
                    tempfile.TemporaryDirectory() as temporary:
                output = pathlib.Path(temporary) / "ours.db"
                run(folder, ["--allow-incomplete-ranks", "-o", str(output)])
                _, ours = load(output)
                frames = dict(row.fields for row in ours["tracebacks"])
                self.assertTrue(all(" at " in text for text in frames.values()))
                used = {call.fields[4] for call in ours["ncclcalls"]}
                self.assertEqual(used - {0}, set(frames))


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
