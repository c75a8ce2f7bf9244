#!/usr/bin/python3
"""Checks that everything which reads a job's dumps gives the same answers.

    tests/agreement_test.py PROGRAM FAMILY_REPORT [COUNT]

`trace --json`, the database of `--sqlite`, `fr-trace --json` and the text of
`fr-trace` and `entries` are made of each real job, of COUNT simulated jobs of
each family, and of jobs made here: groups that were created again, rings that
begin within a batch, statuses of groups without entries. They must agree on who
is present, who belongs to whom, what is done and who differs.
"""

import collections
import json
import os
import pathlib
import pickle
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = None
FAMILY_REPORT = None
COUNT = 30

KINDS = {"type_mismatch": ("operation", "batch"), "size_mismatch": ("sizes",),
         "dtype_mismatch": ("dtypes",)}


def output(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          check=False, env={**os.environ, "COLUMNS": "100000"})
    if done.returncode not in (0, 1):
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def entry(sequence, operation="all_reduce", group="0", local=0,
          state="completed"):
    return {"group": group, "local": local, "sequence": sequence,
            "operation": operation, "state": state}


def write_job(folder, groups, ranks):
    """A dump for each rank: its entries, where its ring begins, its statuses."""
    for rank, (entries, first, statuses) in ranks.items():
        own = {name: members for name, members in groups.items()
               if rank in members}
        dump = {
            "version": "2.10", "nccl_version": "2.28.9",
            "pg_config": {name: {"name": name, "desc": f"{name}_made",
                                 "ranks": str(members)}
                          for name, members in own.items()},
            "pg_status": {local: {"last_enqueued_collective": last,
                                  "last_started_collective": last,
                                  "last_completed_collective": last}
                          for local, last in statuses.items()},
            "entries": [{
                "frames": [], "record_id": first + i, "pg_id": one["local"],
                "process_group": (one["group"], f"{one['group']}_made"),
                "collective_seq_id": one["sequence"], "p2p_seq_id": 0,
                "op_id": first + i, "profiling_name": f"nccl:{one['operation']}",
                "time_created_ns": 10 ** 18 + 10 ** 6 * (first + i),
                "input_sizes": [[4]], "input_dtypes": ["Float"],
                "output_sizes": [[4]], "output_dtypes": ["Float"],
                "state": one["state"], "time_discovered_started_ns": None,
                "time_discovered_completed_ns":
                    10 ** 18 + 10 ** 6 * (first + i) + 10 ** 5
                    if one["state"] == "completed" else None,
                "retired": one["state"] == "completed", "timeout_ms": 600000,
                "is_p2p": False} for i, one in enumerate(entries)]}
        (folder / f"rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))


def created_again(folder):
    """Rank 1 is still in the first group; rings of 2 and 3 have wrapped."""
    twice = [entry(i) for i in (1, 2, 3)] + [
        entry(1, local=1), entry(2, "broadcast", local=1, state="scheduled")]
    write_job(folder, {"0": [0, 1, 2, 3]}, {
        0: (twice, 0, {0: 3, 1: 2}),
        1: (twice[:3], 0, {0: 3}),
        2: (twice[2:], 9, {0: 3, 1: 2}),
        3: (twice[3:4], 9, {1: 1})})


def created_again_and_closed(folder):
    """Everybody came to the last of three groups of one name."""
    thrice = [entry(i, local=k) for k in range(3) for i in range(1, 4 + k)]
    write_job(folder, {"0": [0, 1, 2]}, {
        0: (thrice, 0, {0: 3, 1: 4, 2: 5}),
        1: (thrice[5:], 5, {2: 5}),
        2: (thrice, 0, {0: 3, 1: 4, 2: 5})})


def begins_within_a_batch(folder):
    """Rings begin with a batch's second operation, and with its end."""
    batch = [entry(1, name) for name in
             ("all_reduce", "broadcast", "reduce", "coalesced")]
    write_job(folder, {"0": [0, 1, 2]}, {
        0: (batch + [entry(2)], 0, {0: 2}),
        1: (batch[1:] + [entry(2)], 1, {0: 2}),
        2: (batch[3:] + [entry(2, state="scheduled")], 3, {0: 2})})


def status_without_entries(folder):
    """Rank 2 has overwritten what it did in tp; its status tells how far."""
    groups = {"0": [0, 1, 2], "tp": [0, 1, 2]}
    own = [entry(1, group="tp", local=1), entry(2, group="tp", local=1),
           entry(3, group="tp", local=1, state="scheduled"), entry(1)]
    write_job(folder, groups, {
        0: (own, 0, {0: 1, 1: 3}),
        1: (own, 0, {0: 1, 1: 3}),
        2: ([entry(1)], 40, {0: 1, 1: 2})})


def status_of_another_group(folder):
    """What ranks 0 and 1 call 1 is tp; on rank 2 that is pp."""
    groups = {"0": [0, 1, 2], "tp": [0, 1, 2], "pp": [2]}
    own = [entry(1, group="tp", local=1), entry(2, group="tp", local=1),
           entry(3, group="tp", local=1, state="scheduled"), entry(1)]
    write_job(folder, groups, {
        0: (own, 0, {0: 1, 1: 3}),
        1: (own, 0, {0: 1, 1: 3}),
        2: ([entry(1), entry(50, group="pp", local=1)], 40, {0: 1, 1: 50})})


MADE = (created_again, created_again_and_closed, begins_within_a_batch,
        status_without_entries, status_of_another_group)


def ranks_in(text):
    """The ranks of a set as it is printed: 0-3,8,16-64:8."""
    found = set()
    for part in text.split(","):
        part, _, step = part.partition(":")
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1,
                           int(step or 1)))
    return found


class Grid:
    """What `entries` shows of a group: of each row and rank, its cell."""

    def __init__(self, lines):
        self.cells = {}    # by label and rank
        self.common = {}   # what most ranks called, by label
        sets = {}
        starts = []
        for line in lines:
            named = re.match(r"  (set \d+): ranks (\S+)$", line)
            if named:
                sets[named[1]] = ranks_in(named[2])
            elif line.lstrip().startswith("operation "):
                starts = [(found.start(), sets.get(found[0]) or
                           (found[0] if found.start() == line.index("operation")
                            else ranks_in(found[0])))
                          for found in re.finditer(r"\S+(?: \S+)*", line)]
            elif starts and line.startswith("  #"):
                label = line.split()[0]
                ends = [start for start, _ in starts[1:]] + [len(line)]
                texts = [line[start:end].strip()
                         for (start, _), end in zip(starts, ends)]
                self.common[label] = texts[0].split(" ")[0]
                for (_, ranks), text in zip(starts[1:], texts[1:]):
                    for rank in ranks:
                        self.cells[label, rank] = text


class Answers:
    """What each reader says of one job."""

    def __init__(self, folder, scratch):
        database = scratch / "job.db"
        dumps = [str(folder)]
        self.trace = json.loads(output(
            "trace", "--json", "--sqlite", str(database), *dumps))
        self.fr_trace = json.loads(output(
            "fr-trace", "--json", "--allow-incomplete-ranks", "--mismatch_cap",
            "1000000", *dumps))
        self.fr_text = output(
            "fr-trace", "--stdout", "--allow-incomplete-ranks",
            "--mismatch_cap", "1000000", *dumps)
        self.entries = output("entries", "--color=never", *dumps)
        connection = sqlite3.connect(database)
        connection.row_factory = sqlite3.Row
        self.collectives = connection.execute(
            "SELECT c.*, k.operation FROM collectives c JOIN calls k "
            "ON k.id = c.call_id ORDER BY c.id").fetchall()
        self.members = collections.defaultdict(dict)  # of a row, by rank
        for row in connection.execute(
                "SELECT collective_id, rank, agrees, done FROM entries "
                "WHERE collective_id IS NOT NULL"):
            self.members[row["collective_id"]][row["rank"]] = row
        self.absent = collections.defaultdict(dict)
        for row in connection.execute(
                "SELECT collective_id, rank, reason FROM missing_ranks"):
            self.absent[row["collective_id"]][row["rank"]] = row["reason"]
        self.lanes = connection.execute("SELECT * FROM lanes").fetchall()
        self.ring_starts = dict(connection.execute(
            "SELECT rank, ring_start FROM ranks").fetchall())
        self.statuses = connection.execute("SELECT * FROM statuses").fetchall()
        self.local_groups = collections.defaultdict(set)  # by rank and number
        self.listed = set()  # groups and ranks with entries
        self.with_messages = set()  # groups
        for row in connection.execute(
                "SELECT DISTINCT e.rank, e.group_id, c.local_group, "
                "c.point_to_point FROM entries e JOIN calls c "
                "ON c.id = e.call_id"):
            self.local_groups[row["rank"], row["local_group"]].add(
                row["group_id"])
            self.listed.add((row["group_id"], row["rank"]))
            if row["point_to_point"]:
                self.with_messages.add(row["group_id"])
        self.rows = {}  # of an entry's number
        for row in connection.execute(
                "SELECT id, collective_id FROM entries"):
            self.rows[row["id"] - 1] = row["collective_id"]
        connection.close()


class Agreement(unittest.TestCase):
    def check_tables(self, answers):
        """fr-trace --json and the database are the same table."""
        self.assertEqual(len(answers.fr_trace["collectives"]),
                         len(answers.collectives))
        for ours, row in zip(answers.fr_trace["collectives"],
                             answers.collectives):
            for key in ("difference", "majority", "blocks", "earlier",
                        "expected", "joined", "absent", "no_dump", "unknown",
                        "pending", "sequence"):
                self.assertEqual(int(ours[key]) if key == "sequence"
                                 else ours[key], row[key], (key, row["id"]))
            members = answers.members[row["id"]]
            for match in ours["matches"]:
                member = members[match["rank"]]
                self.assertEqual(match["agrees"], member["agrees"])
                self.assertEqual(match["done"], member["done"])

    def check_presence(self, answers):
        """Each rank of a collective is in one bucket, by counts and by name."""
        for row in answers.collectives:
            if row["kind"] != "collective":
                continue
            reasons = collections.Counter(answers.absent[row["id"]].values())
            self.assertEqual(len(answers.members[row["id"]]), row["joined"])
            self.assertEqual(reasons["absent"], row["absent"], dict(row))
            self.assertEqual(reasons["no dump"], row["no_dump"])
            self.assertEqual(reasons["not in dump"] + reasons["dump cut off"],
                             row["unknown"])
            pending = [rank for rank, member
                       in answers.members[row["id"]].items()
                       if not member["done"]]
            self.assertEqual(len(pending), row["pending"])

    def check_problems(self, answers):
        """What torchfrtrace's words say is what the table says."""
        by_row = collections.defaultdict(list)
        for problem in answers.fr_trace["problems"]:
            row = answers.rows[problem["entry"]]
            self.assertIsNotNone(row)
            by_row[row].append(problem)
        for row in answers.collectives:
            problems = by_row[row["id"]]
            self.assertLessEqual(len(problems), 1)
            problem = problems[0] if problems else {
                "kind": "", "missing": [], "no_dump": [], "errors": []}
            differ = sorted(rank for rank, member
                            in answers.members[row["id"]].items()
                            if not member["agrees"])
            states = [error for error in problem["errors"] if
                      error["mismatch"] == "COLLECTIVE_STATE_MISMATCH"]
            errors = sorted(error["rank"] for error in problem["errors"]
                            if error not in states)
            if row["kind"] == "collective":
                absent = sorted(
                    rank for rank, reason in answers.absent[row["id"]].items()
                    if reason == "absent")
                if problem["kind"] != "numel":
                    self.assertEqual(problem["missing"], absent, dict(row))
            if row["difference"] is None:
                self.assertEqual(errors, [], dict(row))
                self.assertEqual(differ, [])
            else:
                self.assertIn(problem["kind"],
                              ("numel", "mismatch", "missing_ranks"))
                self.assertNotEqual(errors, [])
                if problem["kind"] != "numel" and differ:
                    self.assertEqual(errors, differ)

    def check_text(self, answers):
        """The text reports what the JSON says is reported."""
        reported = [problem for problem in answers.fr_trace["problems"]
                    if problem["reported"]
                    and problem["kind"] == "missing_ranks"]
        self.assertEqual(
            len(re.findall("^Not all ranks joining collective",
                           answers.fr_text, re.M)), len(reported))

    def check_trace(self, answers):
        """The verdict rests on the same facts."""
        verdict = answers.trace["verdict"]
        waiting = {member["rank"] for members in answers.members.values()
                   for member in members.values() if not member["done"]}
        for rank in answers.trace["ranks"]:
            if rank["state"] == "waiting":
                self.assertIn(rank["rank"], waiting)
        if verdict["kind"] not in KINDS:
            return
        rows = [row for row in answers.collectives
                if row["sequence"] == int(verdict["sequence"]) and row["blocks"]
                and row["difference"] in KINDS[verdict["kind"]]
                and row["operation"] == verdict["operation"]]
        self.assertTrue(rows, verdict["summary"])
        differ = [sorted(rank for rank, member
                         in answers.members[row["id"]].items()
                         if not member["agrees"]) for row in rows]
        if verdict["confidence"] != "possible":
            self.assertIn(verdict["culprits"], differ)

    def check_entries(self, answers):
        """The grid shows the rows of the table, and who is absent there."""
        titles = re.split(r"^group .*\n", answers.entries, flags=re.M)[1:]
        groups = sorted({group for group, _ in answers.listed})
        self.assertEqual(len(titles), len(groups))
        for group, text in zip(groups, titles):
            grid = Grid(text.split("\n"))
            rows = [row for row in answers.collectives
                    if row["group_id"] == group and row["kind"] == "collective"]
            incarnation = 1
            sequence = 0
            for row in rows:
                if row["earlier"]:
                    incarnation += row["sequence"] <= sequence
                    sequence = row["sequence"]
                mark = f"@{incarnation}" if row["earlier"] else ""
                self.check_row(answers, row, grid, mark)

    def check_row(self, answers, row, grid, mark):
        label = f"#{row['sequence']}"
        self.assertIn(label + mark, grid.common)
        for rank, reason in answers.absent[row["id"]].items():
            if reason == "no dump":
                continue
            cell = grid.cells[label + mark, rank]
            if reason == "absent":
                self.assertEqual(cell, "-", (dict(row), rank))
            elif answers.ring_starts[rank] == 0:
                self.assertIn(cell, ("?",) if row["earlier"] else ("?", ""),
                              (dict(row), rank))
            else:  # it may share a column with ranks that have more
                self.assertNotEqual(cell, "-", (dict(row), rank))
        for place, rank in grid.cells:
            if place.split("@")[0].split(".")[0] != label or \
                    place.partition("@")[2] != mark[1:]:
                continue
            cell = grid.cells[place, rank]
            if "." not in place and rank in answers.members[row["id"]]:
                self.assertNotEqual(cell, "-", (dict(row), place, rank))
            # Where nobody differs, all call the same operation in a row.
            if row["difference"] is None and cell not in ("-", "?", ""):
                word = cell.split(" ")[0].strip(",")
                self.assertIn(word, ("completed", "started", "scheduled",
                                     "unknown", grid.common[place]),
                              (dict(row), place, rank))

    def check_statuses(self, answers):
        """A status is of one group, and it is that group's lane it bounds."""
        of_lane = collections.defaultdict(list)
        for status in answers.statuses:
            named = answers.local_groups[status["rank"], status["local_group"]]
            if len(named) == 1:
                self.assertEqual({status["group_id"]}, named, dict(status))
            if status["group_id"] is not None:
                of_lane[status["group_id"], status["rank"]].append(status)
        for lane in answers.lanes:
            key = (lane["group_id"], lane["rank"])
            if key in answers.listed or key[0] in answers.with_messages:
                continue
            self.assertLessEqual(len(of_lane[key]), 1)
            last = max([0] + [status["last_enqueued"]
                              for status in of_lane[key]])
            self.assertEqual(lane["last_enqueued"] or 0, last, dict(lane))

    def check(self, folder, scratch):
        answers = Answers(folder, scratch)
        self.check_tables(answers)
        self.check_presence(answers)
        self.check_problems(answers)
        self.check_text(answers)
        self.check_trace(answers)
        self.check_entries(answers)
        self.check_statuses(answers)

    def test_real_jobs_agree(self):
        for folder in sorted((ROOT / "tests/data/flight").iterdir()):
            with self.subTest(folder.name), \
                    tempfile.TemporaryDirectory() as scratch:
                self.check(folder, pathlib.Path(scratch))

    def test_made_jobs_agree(self):
        for make in MADE:
            with self.subTest(make.__name__), \
                    tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch) / "dumps"
                folder.mkdir()
                make(folder)
                self.check(folder, pathlib.Path(scratch))

    def simulate(self, *family):
        for index in range(COUNT):
            with self.subTest(f"{family} {index}"), \
                    tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch) / "dumps"
                folder.mkdir()
                subprocess.run([FAMILY_REPORT, *family, str(index), "1",
                                str(folder)], capture_output=True, check=False)
                truth = folder / "truth.json"
                if truth.exists():
                    truth.unlink()
                if any(folder.iterdir()):
                    self.check(folder, pathlib.Path(scratch))

    def test_simulated_hangs_agree(self):
        self.simulate()

    def test_simulated_moving_jobs_agree(self):
        self.simulate("--snapshots")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv[1])
    FAMILY_REPORT = os.path.abspath(sys.argv[2])
    if len(sys.argv) > 3:
        COUNT = int(sys.argv[3])
    unittest.main(argv=sys.argv[:1])
