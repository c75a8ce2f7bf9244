"""Gives commands what they cannot read, and checks that they say what it is.

    tests/cli/wrong_input_test.py build/dev/postflight
"""

import gzip
import json
import os
import pathlib
import pickle
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

DATA = pathlib.Path(__file__).parents[1] / "data"
# What each kind of input is called, the command that reads it, and the commands
# that take it.
DUMP = ("a flight-recorder dump", "postflight trace",
        {"trace", "entries", "pickle"})
DUMPS = ("a folder of flight-recorder dumps", "postflight trace",
         {"trace", "entries"})
CHECKPOINT = ("a checkpoint", "postflight ckpt ls",
              {"ckpt ls", "ckpt verify", "pickle"})
KINDS = {
    "dump": DUMP,
    "dump.json": DUMP,
    "dumps": DUMPS,
    "model.pt": CHECKPOINT,
    "legacy.pt": CHECKPOINT,
    "model.safetensors": CHECKPOINT,
    "run.pflog": ("a profile", "postflight profile report",
                  {"profile report"}),
    "py_spy.txt": ("the stacks of a process", "postflight stacks", {"stacks"}),
    "hung.log": ("the stacks of a process", "postflight stacks", {"stacks"}),
    "answer.json": ("an answer of postflight --json, for other programs", None,
                    set()),
    "job.db": ("an SQLite database", "sqlite3", set()),
    "it's.gz": ("compressed with gzip", "gunzip -k",
                {"trace", "entries", "pickle"}),
    "list.pkl": ("a pickle", "postflight pickle",
                 {"pickle", "trace", "entries", "ckpt ls", "ckpt verify"}),
    "nothing": (None, None, set()),
}
COMMANDS = ["trace", "entries", "stacks", "ckpt ls", "ckpt verify", "pickle",
            "profile report"]


class WrongInput(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chmod(cls.folder.name, 0o755)
        cls.addClassCleanup(cls.folder.cleanup)
        at = pathlib.Path(cls.folder.name)
        shutil.copy(cls.program, at / "postflight")
        dump = DATA / "flight/nccl_missing_rank/nccl_trace_rank_0"
        shutil.copy(dump, at / "dump")
        shutil.copytree(dump.parent, at / "dumps")
        shutil.copy(DATA / "ckpt/basic.pt", at / "model.pt")
        shutil.copy(DATA / "ckpt/legacy.pt", at / "legacy.pt")
        shutil.copy(DATA / "stacks/py_spy_rank0.txt", at / "py_spy.txt")
        shutil.copy(DATA / "stacks/faulthandler_rank3.txt", at / "hung.log")
        shutil.copy(DATA / "profile/train-rank0.pflog", at / "run.pflog")
        header = json.dumps({"w": {"dtype": "F32", "shape": [1],
                                   "data_offsets": [0, 4]}}).encode()
        (at / "model.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + bytes(4))
        (at / "dump.json").write_text(json.dumps(
            {"version": "2.10", "pg_config": {}, "entries": []}))
        (at / "answer.json").write_text(cls.run_command(
            "trace", "--json", "dumps").stdout)
        with sqlite3.connect(at / "job.db") as database:
            database.execute("create table t (a)")
        (at / "it's.gz").write_bytes(gzip.compress(b"text"))
        (at / "list.pkl").write_bytes(pickle.dumps([1, 2]))
        (at / "nothing").write_text("hello\n")
        closed = at / "closed"
        closed.mkdir()
        shutil.copy(dump, closed / "rank_0")
        closed.chmod(0)
        (at / "denied").write_bytes(dump.read_bytes())
        (at / "denied").chmod(0)
        cls.addClassCleanup(closed.chmod, 0o700)

    @classmethod
    def run_command(cls, *arguments, other_user=False):
        before = (["setpriv", "--reuid=65534", "--regid=65534",
                   "--clear-groups"]
                  if other_user and os.geteuid() == 0 else [])
        return subprocess.run([*before, "./postflight", *arguments],
                              cwd=cls.folder.name, capture_output=True,
                              text=True, timeout=60)

    def test_names_the_kind_and_its_command(self):
        for name, (what, reader, takers) in KINDS.items():
            for command in COMMANDS:
                with self.subTest(f"{command} {name}"):
                    done = self.run_command(*command.split(), name)
                    quoted = shlex.quote(name).replace("'\"'\"'", r"'\''")
                    hint = (None if what is None else f"{name} is {what}" +
                            (f": {reader} {quoted}\n" if reader else "\n"))
                    if command in takers or what is None:
                        self.assertNotIn(f"{name} is ", done.stderr)
                        continue
                    self.assertIn(hint, done.stderr)
                    # A dump is a pickle, which ckpt reads.
                    self.assertEqual(done.returncode,
                                     0 if name == "dump" and
                                     command.startswith("ckpt") else 2)

    def test_says_who_may_read_it(self):
        for command in [*COMMANDS, "doctor", "doctor --env"]:
            for name, denied in (("denied", "denied"),
                                 ("closed/rank_0", "closed"),
                                 ("closed", "closed")):
                if name == "closed" and command not in ("trace", "entries"):
                    continue
                with self.subTest(f"{command} {name}"):
                    done = self.run_command(*command.split(), name,
                                            other_user=True)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn("permission denied: ", done.stderr)
                    self.assertIn(" has mode 0000; read it as ", done.stderr)
                    self.assertRegex(done.stderr, rf"chmod a\+rx? {denied}\n")

    def test_says_that_a_folder_is_empty(self):
        os.makedirs(os.path.join(self.folder.name, "empty"), exist_ok=True)
        for command in ("trace", "entries", "stacks", "ckpt ls"):
            done = self.run_command(*command.split(), "empty")
            self.assertEqual(done.returncode, 2, command)
            self.assertRegex(done.stderr, "no files|holds no checkpoint")


if __name__ == "__main__":
    WrongInput.program = sys.argv.pop(1)
    unittest.main()
