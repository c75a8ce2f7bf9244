"""Drives contrib/bin/strobeclient as torch's profiler class does.

    tests/python/strobeclient_test.py build/release/postflight
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENT = ROOT / "contrib/bin/strobeclient"


class Strobeclient(unittest.TestCase):
    program = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = {**os.environ, "POSTFLIGHT_PROGRAM": self.program,
                            "TMPDIR": self.folder.name}

    def client(self, *arguments):
        """What torch reads: the status and stderr. It waits for the end of
        stdout, too, so that a profiler which keeps it open would hang."""
        done = subprocess.run([CLIENT, *map(str, arguments)], text=True,
                              capture_output=True, timeout=30,
                              cwd=self.folder.name, env=self.environment)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def start(self, pid):
        namespace = os.stat("/proc/self/ns/pid").st_ino
        return self.client(
            "run", "--profiler", "pyperf", "--event", "cycles", "--async",
            "--sample-interval", 10000000, "--duration-ms", 60000, "--pid",
            f"{namespace}:{pid}", "--sample-tags", "a,b")

    def busy(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))

    def test_a_run_from_start_to_result(self):
        status, words = self.start(os.getpid())
        if status != 0 and "ermi" in words:
            self.skipTest(f"this process may not be read: {words}")
        self.assertEqual(status, 0, words)
        run = re.search(r"INFO Run Id: (-?\d+)", words).group(1)
        status, words = self.client("getRunStatus", "--run-id", run)
        self.assertEqual((status, words), (0, "Profile run status: RUNNING\n"))
        self.busy(0.7)
        status, words = self.client("stopRun", "--run-id", run)
        self.assertEqual(status, 0)
        self.assertRegex(words, r"INFO ::1:(.*)Success!(.*)")
        status, words = self.client("getRunStatus", "--run-id", run)
        lines = words.splitlines()
        self.assertEqual(status, 0)
        self.assertIn("Profile run finished with SUCCESS", lines[0])
        self.assertTrue(lines[0].startswith("INFO ::1:"))
        self.assertGreater(int(lines[1].removeprefix("Total samples: ")), 0)
        for line, name in zip(lines[2:], ("GraphProfiler", "Icicle view")):
            self.assertTrue(line.startswith(f"{name} (python stack): file://"))
            path = pathlib.Path(line.partition("file://")[2])
            self.assertGreater(path.stat().st_size, 100)
        # A run is answered for once.
        status, words = self.client("getRunStatus", "--run-id", run)
        self.assertEqual((status, words), (
            1, f"ERROR strobeclient: there is no run {run}\n"))

    def test_runs_at_the_same_time_are_kept_apart(self):
        found, others = [], []
        for _ in range(2):
            others.append(subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(60)"]))

        def start(pid):
            found.append(self.start(pid))
        threads = [threading.Thread(target=start, args=(other.pid,))
                   for other in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runs = [re.search(r"Run Id: (\d+)", words) for _, words in found]
        for other in others:
            other.kill()
            other.wait()
        if None in runs:
            self.skipTest(f"processes may not be read: {found}")
        self.assertNotEqual(runs[0].group(1), runs[1].group(1))
        for run in runs:
            self.assertEqual(self.client("stopRun", "--run-id",
                                         run.group(1))[0], 0)

    def test_what_cannot_be_profiled_says_why(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        status, words = self.start(gone.pid)
        self.assertEqual(status, 1)
        self.assertEqual(words, "ERROR strobeclient: postflight: there is no "
                                f"process {gone.pid}\n")
        for arguments in (("getRunStatus", "--run-id", "../x"),
                          ("stopRun", "--run-id", "123456789"),
                          ("run", "--pid", "x"), ("run", "--unknown")):
            status, words = self.client(*arguments)
            self.assertEqual(status, 1)
            self.assertTrue(words.startswith("ERROR strobeclient: "), words)
        self.assertEqual(self.client()[0], 2)

    def test_its_script_is_for_any_shell(self):
        for shell in ("sh", "dash", "bash"):
            if shutil.which(shell):
                subprocess.run([shell, "-n", CLIENT], check=True)


if __name__ == "__main__":
    Strobeclient.program = str(pathlib.Path(sys.argv.pop()).resolve())
    unittest.main()
