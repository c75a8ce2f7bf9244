"""Watches a live process with `postflight profile top`.

    tests/cli/profile_top_test.py build/dev/postflight
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

LOOP = "def spin():\n    while True: pass\nprint(flush=True)\nspin()"


class Top(unittest.TestCase):
    program = None

    def setUp(self):
        self.child = subprocess.Popen(
            ["/usr/bin/python3", "-c", LOOP], stdout=subprocess.PIPE)
        self.child.stdout.readline()

    def tearDown(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def top(self, *arguments):
        return [self.program, "profile", "top", "--pid", str(self.child.pid),
                *arguments]

    def test_refreshes_until_the_duration_is_over(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(self.top("--duration", "2.5s"),
                                  capture_output=True, text=True, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = [int(count) for count in
                  re.findall(r"process \d+: (\d+) samples", done.stdout)]
        self.assertGreaterEqual(len(counts), 2)
        self.assertGreater(counts[-1], counts[0])
        self.assertIn("spin", done.stdout)

    def test_prints_an_object_a_line_as_json(self):
        done = subprocess.run(self.top("--duration", "2.5s", "--json"),
                              capture_output=True, text=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreaterEqual(len(answers), 2)
        self.assertEqual(answers[0]["functions"][0]["name"], "spin")

    def test_ends_with_ctrl_c_and_leaves_the_process_alone(self):
        with subprocess.Popen(self.top(), stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            self.assertEqual(process.wait(), 0)
        self.assertIsNone(self.child.poll())

    def test_says_what_is_wrong(self):
        done = subprocess.run([self.program, "profile", "top"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pid is required", done.stderr)


if __name__ == "__main__":
    Top.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
