"""Reads the stacks of live processes.

    tests/cli/stacks_test.py build/dev/postflight
"""

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


def waits(pid):
    """Whether all threads of a process have come to rest."""
    return all(
        (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


class Stacks(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "train.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(PROGRAM))

    def start(self, *arguments, threads=2, **environment):
        process = subprocess.Popen(
            [PYTHON, self.script, *arguments], stdout=subprocess.PIPE,
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
