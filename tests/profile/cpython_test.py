"""CPython's own tests pass under the profiler.

cpython_test.py <postflight>

Those of processes, signals, forks, threads and descriptors: what would notice
a profiler. They are run where a Python with its test package is installed
(Debian's libpython3.11-testsuite, or one below ~/.pyenv/versions), and those
that fail without the profiler are left out.
"""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

TESTS = ["test_signal", "test_fork1", "test_wait3", "test_wait4",
         "test_threadsignals", "test_thread", "test_threading", "test_posix",
         "test_subprocess", "test_os", "test_faulthandler"]


def has_tests(python):
    return os.path.exists(python) and subprocess.run(
        [python, "-c", "import test.test_signal, test.test_subprocess"],
        capture_output=True, check=False).returncode == 0


def pythons():
    found = ["/usr/bin/python3"]
    for minor in range(14, 10, -1):
        found += sorted(glob.glob(os.path.expanduser(
            f"~/.pyenv/versions/3.{minor}.*/bin/python3")))
    return [python for python in found if has_tests(python)]


class CPython(unittest.TestCase):
    postflight = None

    def run_tests(self, python, front, tests):
        """The modules of tests that fail, and what they print."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [*front, python, "-m", "test", "-j2", "--timeout", "120",
                 *tests],
                cwd=folder, capture_output=True, text=True, check=False)
        failed = {word for line in done.stdout.splitlines()
                  if line.startswith("    test_") for word in line.split()}
        return (failed if done.returncode != 0 else set()), done

    def test_passes_as_without(self):
        candidates = pythons()
        if not candidates:
            self.skipTest("no Python here has its test package")
        with tempfile.TemporaryDirectory() as folder:
            front = [self.postflight, "profile", "--quiet", "--rate", "999",
                     "-o", os.path.join(folder, "log.pflog"), "--"]
            failed, done = self.run_tests(candidates[0], front, TESTS)
        if done.returncode == 0:
            return
        alone, _ = self.run_tests(candidates[0], [], sorted(failed) or TESTS)
        self.assertTrue(failed)
        self.assertLessEqual(failed, alone, done.stdout + done.stderr)


if __name__ == "__main__":
    CPython.postflight = os.path.abspath(sys.argv.pop(1))
    unittest.main()
