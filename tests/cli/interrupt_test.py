"""Presses Ctrl-C in a terminal while the program works.

    tests/cli/interrupt_test.py build/dev/postflight
"""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_SECONDS = 60


class Shell:
    """bash in a terminal of its own."""

    def __init__(self, script, folder):
        self.printed = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["TERM"] = "xterm"
            os.execv("/bin/bash", ["bash", "--norc", "-c", script])

    def read_until(self, pattern):
        end = time.monotonic() + TIMEOUT_SECONDS
        while not re.search(pattern, self.printed):
            if not self.read(end - time.monotonic()):
                raise AssertionError(
                    f"{pattern} was not printed: {self.printed}")

    def read(self, seconds):
        if not select.select([self.terminal], [], [], max(seconds, 0))[0]:
            return False
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:  # the other end is closed
            return False
        self.printed += piece
        return bool(piece)

    def press_interrupt(self):
        os.write(self.terminal, b"\x03")

    def finish(self):
        while self.read(TIMEOUT_SECONDS):
            pass
        os.close(self.terminal)
        return os.waitpid(self.pid, 0)[1]


class Interrupt(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.mkfifo(self.folder / "endless")

    def test_ends_a_shell_loop_and_leaves_a_clean_line_and_no_file(self):
        shell = Shell(
            f"cat /dev/zero > endless 2> /dev/null & for round in 1 2 3; do echo round "
            f"$round; {self.program} stream encode -w stream.rot13/1 -i "
            f"endless -o out; done; echo the loop went on", self.folder)
        shell.read_until(rb"Encoding")
        shell.press_interrupt()
        status = shell.finish()
        self.assertTrue(os.WIFSIGNALED(status), status)
        self.assertEqual(os.WTERMSIG(status), signal.SIGINT)
        self.assertNotIn(b"went on", shell.printed)
        self.assertNotIn(b"round 2", shell.printed)
        # The terminal echoes ^C; the line is erased.
        self.assertTrue(shell.printed.rstrip().endswith(b"\r\x1b[K"),
                        shell.printed[-200:])
        self.assertEqual(os.listdir(self.folder), ["endless"])

    def test_ends_a_profile_and_a_shell_loop_around_it(self):
        shell = Shell(
            f"for round in 1 2 3; do echo round $round; {self.program} "
            f"profile -o x.pflog -- /bin/sh -c 'echo begun; exec sleep "
            f"1000'; done; echo the loop went on", self.folder)
        shell.read_until(rb"begun")
        shell.press_interrupt()
        status = shell.finish()
        self.assertTrue(os.WIFSIGNALED(status), status)
        self.assertNotIn(b"round 2", shell.printed)
        self.assertIn(b"PROFILE", shell.printed)
        self.assertTrue((self.folder / "x.pflog").exists())

    def test_ends_every_long_command_and_leaves_no_file(self):
        size = 16 << 30  # sparse
        header = json.dumps({f"w{i}": {
            "dtype": "U8", "shape": [size // 4],
            "data_offsets": [i * (size // 4), (i + 1) * (size // 4)]}
            for i in range(4)}).encode()
        with open(self.folder / "big.safetensors", "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
        for command in (
                "trace endless", "trace --log endless", "pickle endless",
                "entries endless -p end", "profile report endless",
                "ckpt scan endless", "stacks endless",
                "stacks --mine --again 100s",
                "ckpt digest big.safetensors --manifest m.json",
                "ckpt stats big.safetensors",
                "ckpt diff big.safetensors big.safetensors",
                "ckpt read big.safetensors -o out.npz",
                "ckpt convert big.safetensors out.pt",
                "ckpt convert big.safetensors out --to dcp",
                "ckpt salvage big.safetensors out.pt",
                "stream encode -w stream.zstd/1 -i big.safetensors -o out"):
            with self.subTest(command=command):
                before = set(os.listdir(self.folder))
                process = subprocess.Popen(
                    [self.program, *command.split()], cwd=self.folder,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                if "endless" in command:
                    with open(self.folder / "endless", "wb", 0) as pipe:
                        pipe.write(bytes(1 << 20))  # more than a pipe holds
                        process.send_signal(signal.SIGINT)
                        process.wait(TIMEOUT_SECONDS)
                else:
                    time.sleep(0.2)  # it also has to die of one that is early
                    process.send_signal(signal.SIGINT)
                complaints = process.communicate(timeout=TIMEOUT_SECONDS)[1]
                self.assertEqual(process.returncode, -signal.SIGINT,
                                 complaints)
                self.assertEqual(set(os.listdir(self.folder)), before)

    def test_dies_of_each_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                with subprocess.Popen(
                        [self.program, "stream", "encode", "-w",
                         "stream.rot13/1"], stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL) as process:
                    # A pipe holds less, so it has begun to read.
                    process.stdin.write(b"x" * (1 << 20))
                    process.stdin.flush()
                    process.send_signal(number)
                    self.assertEqual(process.wait(), -number)


if __name__ == "__main__":
    Interrupt.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
