"""Reads the stacks of live processes.

    tests/cli/stacks_test.py build/dev/postflight
"""

import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

PYTHON = "/usr/bin/python3"
PROGRAM = """
    import os, subprocess, sys, threading, time

    def begun(thread):
        print(thread, flush=True)

    def read():
        begun("main")
        threading.Event().wait()

    def step():
        begun("main")
        while True:
            pass

    def load():
        begun("thread")
        threading.Event().wait()

    def main():
        threading.Thread(target=load, daemon=True).start()
        if len(sys.argv) > 1:
            subprocess.Popen([sys.executable, __file__],
                             env={**os.environ, "RANK": "1"})
        (step if os.environ.get("BUSY") else read)()

    main()
"""

# Its values have a repr() that must not run, or run for ever.
LOCALS = """
    import collections, enum, os, sys, threading

    class Hostile:
        def __repr__(self):
            os._exit(3)
        __str__ = __hash__ = __len__ = __iter__ = __getattr__ = __repr__

    class Batch(list):
        __repr__ = Hostile.__repr__

    class Phase(enum.IntEnum):
        LOAD = 3

    Pair = collections.namedtuple("Pair", "a b")

    def hold(argument, *rest, key=None):
        in_cell = -2**100
        hostile = Hostile()
        batch = Batch([1.5, None])
        phase = Phase.LOAD
        pair = Pair(1, "two")
        flags = [True, False, {"x": b"\\x00a"}, {7}, frozenset()]
        text = "\\x1b[31mred \\u00e9\\U0001f600"
        long = "x" * 1000
        many = list(range(1000))
        loop = []
        loop.append(loop)
        zero, whole, error = 0, 2.0, ValueError("bad", 1)
        table = {i: str(i) for i in range(3)}
        del table[1]
        kind = int
        if key:
            unset = 1
        print("main", flush=True)
        threading.Event().wait()
        return lambda: in_cell, unset

    hold({"lr": 1e-3}, 1, 2)
"""


def waits(pid):
    """Whether all threads of a process and its children have come to rest."""
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    return all(
        (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"
        for task in tasks) and all(
            waits(child) for task in tasks
            for child in (task / "children").read_text().split())


class Stacks(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "train.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(PROGRAM))

    def start(self, *arguments, threads=2, python=PYTHON, **environment):
        process = subprocess.Popen(
            [python, self.script, *arguments], stdout=subprocess.PIPE,
            env={**os.environ, **environment}, start_new_session=True)

        def end():
            os.killpg(process.pid, 9)
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        for _ in range(threads):
            process.stdout.readline()
        while "BUSY" not in environment and not waits(process.pid):
            time.sleep(0.01)
        return process.pid

    def stacks(self, *arguments, exit_status=0):
        done = subprocess.run([self.program, "stacks", "--json", *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_status, done.stderr)
        return json.loads(done.stdout)

    def functions(self, process, main=True):
        thread = next(one for one in process["threads"] if one["main"] == main)
        return [frame["function"] for frame in thread["frames"]
                if os.path.basename(frame["file"]) == "train.py"]

    def test_reads_every_thread_of_a_process(self):
        pid = self.start(RANK="3")
        process, = self.stacks("--pid", str(pid))["processes"]
        self.assertEqual(process["rank"], 3)
        self.assertEqual(process["pid"], pid)
        self.assertIn("train.py", process["command"])
        self.assertEqual(self.functions(process),
                         ["read", "main", "<module>"])
        self.assertEqual(self.functions(process, main=False), ["load"])
        self.assertEqual({thread["state"] for thread in process["threads"]},
                         {"waiting"})

    def test_shows_locals_without_running_code(self):
        self.write(LOCALS)
        for python in [PYTHON, *glob.glob(os.path.expanduser(
                "~/.pyenv/versions/3.*/bin/python3"))]:
            minor = int(subprocess.check_output(
                [python, "-c", "import sys; print(sys.version_info[1])"]))
            if not 9 <= minor <= 14:
                continue
            with self.subTest(python):
                pid = self.start(threads=1, python=python)
                process, = self.stacks("--pid", str(pid),
                                       "--locals")["processes"]
                hold, = [frame for frame in process["threads"][0]["frames"]
                         if frame["function"] == "hold"]
                values = {one["name"]: one["value"] for one in hold["locals"]}
                self.assertRegex(values.pop("hostile"),
                                 r"^<Hostile at 0x[0-9a-f]+>$")
                self.assertEqual(values.pop("long"), f"'{'x' * 80}'...")
                self.assertIn("[[", values.pop("loop"))
                self.assertEqual(values, {
                    "argument": "{'lr': 0.001}",
                    "rest": "(1, 2)",
                    "key": "None",
                    "in_cell": str(-2**100),
                    "batch": "Batch([1.5, None])",
                    "phase": "Phase(3)",
                    "pair": "Pair((1, 'two'))",
                    "flags": "[True, False, {'x': b'\\x00a'}, {7}, "
                             "frozenset()]",
                    "text": repr("\x1b[31mred \u00e9\U0001f600"),
                    "many": "[0, 1, 2, 3, 4, 5, 6, 7, ... 992 more]",
                    "zero": "0",
                    "whole": "2.0",
                    "error": "ValueError('bad', 1)",
                    "table": "{0: '0', 2: '2'}",
                    "kind": "<class 'int'>"})
                # Of the innermost Python frame, too; it still runs.
                self.assertIn("self", {
                    one["name"] for one in
                    process["threads"][0]["frames"][0]["locals"]})
                self.assertTrue(waits(pid))

    def text(self, *arguments):
        done = subprocess.run([self.program, "stacks", *arguments],
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def write(self, program):
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(program))

    def test_the_top_of_a_script_is_the_users_code(self):
        self.write("""
            import threading
            print(1, flush=True)
            threading.Event().wait()
        """)
        pid = self.start(threads=1)
        place, = self.stacks("--pid", str(pid))["groups"]
        self.assertRegex(place["place"], r"wait … <module> \(train.py:4\)$")

    def test_hides_the_frame_that_starts_init(self):
        self.write("""
            import threading
            class Loader:
                def __init__(self, last):
                    if last:
                        print(1, flush=True)
                        threading.Event().wait()
            def make(last):
                return Loader(last)
            for i in range(100):  # until the call is specialised
                make(i == 99)
        """)
        for python in glob.glob(os.path.expanduser(
                "~/.pyenv/versions/3.1[2-9]*/bin/python3")):
            with self.subTest(python):
                pid = self.start(threads=1, python=python)
                process, = self.stacks("--pid", str(pid))["processes"]
                self.assertNotIn("__init__", {
                    frame["file"] for frame in process["threads"][0]["frames"]})

    def test_says_that_a_process_is_a_zombie(self):
        self.write("""
            import os, time
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            print(child, flush=True)
            time.sleep(100)
        """)
        process = subprocess.Popen([PYTHON, self.script],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        child = process.stdout.readline().strip()
        self.assertEqual(
            self.text("--pid", child),
            f"postflight: process {child} has ended; its parent, process "
            f"{process.pid}, has not collected it yet (a zombie): look at that "
            "one\n")

    def test_a_shell_that_started_python_is_no_error(self):
        process = subprocess.Popen(
            ["sh", "-c", f"{PYTHON} {self.script}; true"],
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, 9)
        process.stdout.readline()
        answer = self.stacks("--pid", str(process.pid), "--children")
        self.assertIn("train.py", answer["processes"][0]["command"])
        self.assertIn("does not run Python",
                      self.text("--pid", str(process.pid)))

    def test_says_that_a_process_ended_between_two_readings(self):
        self.write("""
            print(1, flush=True)
            import time
            time.sleep(0.5)
        """)
        pid = self.start(threads=1)
        answer = self.stacks("--pid", str(pid), "--again", "2s")
        self.assertEqual(
            [(one["kind"], one["severity"]) for one in answer["findings"]],
            [("read_once", "warning")])
        self.assertIn(f"process {pid} was read only once",
                      answer["findings"][0]["message"])

    def test_says_that_a_version_is_not_supported(self):
        for python in glob.glob(os.path.expanduser(
                "~/.pyenv/versions/3.8*/bin/python3")):
            pid = self.start(python=python)
            self.assertIn("Python 3.8 is not supported",
                          self.text("--mine"))
            self.assertIn(str(pid), self.text("--pid", str(pid)))
        # These have no symbol to find the interpreter by.
        for version in ("2.7", "3.6"):
            for python in glob.glob(os.path.expanduser(
                    f"~/.pyenv/versions/{version}*/bin/python")):
                process = subprocess.Popen(
                    [python, "-c", "import time; time.sleep(1000)"])
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                while "libc" not in pathlib.Path(
                        f"/proc/{process.pid}/maps").read_text():
                    time.sleep(0.01)
                message = (f"process {process.pid}: Python {version} is not "
                           "supported; --native shows its native stacks\n")
                self.assertIn(message, self.text("--pid", str(process.pid)))
                self.assertIn(f"Python {version} is not supported",
                              self.text("--mine"))

    def test_does_not_stop_it(self):
        pid = self.start()
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            before = file.read()
        self.stacks("--pid", str(pid), "--native")
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            after = file.read()
        for key in ("State:", "TracerPid:", "voluntary_ctxt_switches:"):
            self.assertEqual(before.split(key)[1].split("\n")[0],
                             after.split(key)[1].split("\n")[0])

    def test_tells_stuck_from_busy(self):
        stuck = self.start(RANK="0")
        busy = self.start(RANK="1", BUSY="1")
        answer = self.stacks("--pid", str(stuck), "--pid", str(busy),
                             "--again", "100ms")
        main = {process["rank"]: next(one for one in process["threads"]
                                      if one["main"])
                for process in answer["processes"]}
        self.assertEqual(main[0]["motion"], "stuck")
        self.assertEqual(main[1]["state"], "running")

    def test_reads_native_frames_of_threads_that_wait(self):
        pid = self.start()
        process, = self.stacks("--pid", str(pid), "--native")["processes"]
        thread = next(one for one in process["threads"] if one["main"])
        if thread["trouble"]:
            self.assertIn("/syscall", thread["trouble"])
            self.skipTest(thread["trouble"])
        self.assertTrue(thread["frames"][0]["native"])
        self.assertIn("read", [frame["function"] for frame in thread["frames"]
                               if not frame["native"]])

    def test_says_why_a_running_thread_has_no_native_frames(self):
        pid = self.start(BUSY="1")
        process, = self.stacks("--pid", str(pid), "--native")["processes"]
        thread = next(one for one in process["threads"] if one["main"])
        self.assertIn("no native stack: it runs", thread["trouble"])
        self.assertEqual(self.functions(process)[-2:], ["main", "<module>"])

    def test_follows_children_and_groups_them(self):
        pid = self.start("child", threads=4, RANK="0")
        answer = self.stacks("--pid", str(pid), "--children")
        self.assertEqual([process["rank"] for process in answer["processes"]],
                         [0, 1])
        group, = answer["groups"]
        self.assertEqual(group["processes"], [0, 1])
        mine = self.stacks("--mine")["processes"]
        self.assertIn(pid, [process["pid"] for process in mine])

    def test_reports_what_could_not_be_read(self):
        pid = self.start()
        answer = self.stacks("--pid", str(pid), "--pid", "99999999",
                             exit_status=1)
        self.assertEqual(answer["findings"][0]["message"],
                         "there is no process 99999999")
        alone = subprocess.run([self.program, "stacks", "--pid", "99999999"],
                               capture_output=True, text=True)
        self.assertEqual(alone.returncode, 2)
        self.assertEqual(alone.stderr,
                         "postflight: there is no process 99999999\n")


if __name__ == "__main__":
    Stacks.program = sys.argv.pop(1)
    unittest.main()
