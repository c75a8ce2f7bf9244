#!/usr/bin/python3
"""Checks that everything which reads a job's dumps gives the same answers.

    tests/agreement_test.py PROGRAM FAMILY_REPORT [COUNT]

`trace --json`, the database of `--sqlite`, `fr-trace --json` and the text of
`fr-trace` and `entries` are made of each real job and of COUNT simulated jobs of
each family. They must agree on who is present, who belongs to whom, what is
done and who differs.
"""

import collections
import json
import os
import pathlib
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
        """The grid has a dash exactly where somebody is absent."""
        shown = len(re.findall(r" -(?= |$)", answers.entries, re.M))
        absent = any(reason == "absent" for row in answers.collectives
                     for reason in answers.absent[row["id"]].values())
        self.assertEqual(shown > 0, absent)

    def check(self, folder, scratch):
        answers = Answers(folder, scratch)
        self.check_tables(answers)
        self.check_presence(answers)
        self.check_problems(answers)
        self.check_text(answers)
        self.check_trace(answers)
        self.check_entries(answers)

    def test_real_jobs_agree(self):
        for folder in sorted((ROOT / "tests/data/flight").iterdir()):
            with self.subTest(folder.name), \
                    tempfile.TemporaryDirectory() as scratch:
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
