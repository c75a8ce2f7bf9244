#!/usr/bin/python3
"""Runs the queries of docs/flight-database.md and checks what --sqlite writes.

    tests/flight_database_test.py PROGRAM            compare
    tests/flight_database_test.py PROGRAM --update   write down what they answer

A block marked `sql` starts with a comment that names the folder of the job it
is asked of, and is followed by a block marked `text` with its answer.
"""

import glob
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/flight-database.md"
BLOCKS = re.compile(r"```sql\n-- (?P<job>\S+)\n(?P<query>.*?)```\n\n"
                    r"```text\n(?P<answer>.*?)```\n", re.S)


class Databases:
    """Makes each job's database once."""

    def __init__(self, program, folder):
        self.program = os.path.abspath(program)
        self.folder = pathlib.Path(folder)
        self.made = {}

    def dumps(self, job):
        return sorted(glob.glob(str(ROOT / job / "*_rank_*")))

    def of(self, job):
        if job not in self.made:
            target = self.folder / (job.replace("/", "_") + ".db")
            files = [os.path.relpath(name, ROOT) for name in self.dumps(job)]
            done = subprocess.run(
                [self.program, "entries", "--last", "1", "--sqlite", target,
                 *files], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
            assert done.returncode in (0, 1), (job, done.returncode)
            self.made[job] = sqlite3.connect(target)
        return self.made[job]


def table(cursor):
    rows = [[column[0] for column in cursor.description]]
    for row in cursor:
        rows.append(["" if value is None else str(value) for value in row])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(value.ljust(width) for value, width in zip(row, widths))
             for row in rows]
    return "".join(line.rstrip() + "\n" for line in lines)


def run_page(databases, update):
    page = PAGE.read_text()
    differ = []
    count = 0

    def answer(block):
        nonlocal count
        count += 1
        database = databases.of(block["job"])
        got = table(database.execute(block["query"]))
        if got != block["answer"]:
            differ.append(f"{block['query']}answers\n{got}instead of\n"
                          f"{block['answer']}")
        return block[0].replace("```text\n" + block["answer"],
                                "```text\n" + got)

    renewed = BLOCKS.sub(answer, page)
    assert count == page.count("```sql"), "a query without job or answer"
    assert count >= 10, count
    if update:
        PAGE.write_text(renewed)
    elif differ:
        sys.exit("\n".join(differ) + "run it with --update if this is right")
    print(f"{count} queries answer what is written down")


def check_whole(databases, job):
    """Every entry is there, as --json has it, and all keys join."""
    database = databases.of(job)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    done = subprocess.run(
        [databases.program, "entries", "--json", *databases.dumps(job)],
        stdout=subprocess.PIPE, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    entries = [line for line in lines if "finding" not in line]
    rows = database.execute(
        'SELECT rank, position, record_id, "group", description, sequence, '
        "p2p_sequence, operation_id, name, backend, operation, input_sizes, "
        "output_sizes, input_dtypes, output_dtypes, state, retired, "
        "created_ns, started_ns, completed_ns, duration_ms, timeout_ms, "
        "point_to_point, local_group, thread_name, thread, stack_id "
        "FROM entry_details ORDER BY id").fetchall()
    assert len(rows) == len(entries) > 0, (job, len(rows), len(entries))
    frames = dict(database.execute("SELECT stack_id, text FROM stack_texts"))
    for row, entry in zip(rows, entries):
        time = {name: entry[name] and int(entry[name])
                for name in ("created_ns", "started_ns", "completed_ns")}
        assert row == (
            entry["rank"], entry["position"], int(entry["record_id"]),
            entry["group"], entry["group_description"], entry["sequence"],
            entry["p2p_sequence"], int(entry["operation_id"]), entry["name"],
            entry["backend"], entry["operation"], str(entry["input_sizes"]),
            str(entry["output_sizes"]), ", ".join(entry["input_dtypes"]),
            ", ".join(entry["output_dtypes"]), entry["state"],
            int(entry["retired"]), time["created_ns"], time["started_ns"],
            time["completed_ns"], entry["duration_ms"], entry["timeout_ms"],
            int(entry["point_to_point"]), int(entry["local_group"]),
            entry["thread_name"], entry["thread_id"], row[-1]), (row, entry)
        assert frames.get(row[-1], "") == "\n".join(
            f"{frame['function']} at {frame['file']}:{frame['line']}"
            for frame in entry["stack"])
    counts = database.execute(
        "SELECT count(*) FROM collectives c WHERE c.joined <> "
        "(SELECT count(DISTINCT rank) FROM matches m "
        " WHERE m.collective_id = c.id)").fetchone()
    assert counts == (0,), counts


def check_replacing(databases, folder):
    """If the database cannot be written, an existing one is unchanged."""
    dumps = databases.dumps("tests/data/flight/gloo_healthy")

    def write(target, *options):
        return subprocess.run(
            [databases.program, "entries", "--sqlite", target, *options,
             *dumps],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)

    target = pathlib.Path(folder) / "old.db"
    target.write_text("something else")
    assert write(target).returncode == 2
    assert target.read_text() == "something else"
    assert write(target, "--force").returncode == 0
    assert target.read_bytes().startswith(b"SQLite format 3\0")
    done = write(pathlib.Path(folder) / "absent" / "x.db")
    assert done.returncode == 2, done
    assert b"does not exist; create it first" in done.stderr, done.stderr
    done = write(folder)
    assert done.returncode == 2, done
    assert b"it is a folder; name a file inside it" in done.stderr, done.stderr
    # Simulates a full disk for this process.
    before = target.read_bytes()
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 16; trap "" XFSZ; exec "$@"', "sh",
         databases.program, "entries", "--sqlite", target, "--force",
         *dumps],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2, done
    assert b"cannot write the database" in done.stderr, done.stderr
    assert target.read_bytes() == before
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []


def main():
    with tempfile.TemporaryDirectory() as folder:
        databases = Databases(sys.argv[1], folder)
        run_page(databases, "--update" in sys.argv)
        for job in ("nccl_p2p_ring_coalesced", "nccl_tp_fsdp", "nccl_wrapped",
                    "nccl_straggler", "gloo_mesh_hang"):
            check_whole(databases, "tests/data/flight/" + job)
        check_replacing(databases, folder)


if __name__ == "__main__":
    main()
