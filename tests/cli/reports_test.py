"""Pastes every `Next:` of the goldens and documents, and reads reports in a
narrow terminal and a pipe.

    tests/cli/reports_test.py build/dev/postflight
"""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DUMPS = "tests/data/flight/nccl_tp_fsdp"
LINE_OF_CODE = re.compile(r"\([\w.]+\.py:\d+\)")


def in_terminal(columns, *command):
    """What a command prints in a terminal of so many columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
            ["/bin/sh", "-c", f'stty cols {columns} && exec "$@"', "sh",
             *command], cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs,
            env={"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8",
                 "PATH": os.environ["PATH"]},
            start_new_session=True):
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            text += piece
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


class Reports(unittest.TestCase):
    program = None

    def run_it(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=ROOT,
                              capture_output=True, text=True).stdout

    def test_every_next_can_be_pasted_and_leads_somewhere(self):
        texts = [*(ROOT / "tests/golden").rglob("stdout"),
                 ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        commands = {line for path in texts
                    for line in re.findall(r"^Next: (postflight .*)$",
                                           path.read_text(), re.MULTILINE)
                    if "$TMPDIR" not in line}
        self.assertGreater(len(commands), 10)
        environment = {**os.environ, "PATH":
                       f"{os.path.dirname(self.program)}:{os.environ['PATH']}"}
        for command in commands:
            with self.subTest(command=command):
                done = subprocess.run(
                    re.sub(r">.*", "", command), shell=True, cwd=ROOT,
                    env=environment, capture_output=True, text=True)
                self.assertEqual(done.stderr, "")
                self.assertIn(done.returncode, (0, 1))
                self.assertNotEqual(done.stdout, "")

    def test_next_can_be_pasted_for_any_path(self):
        data = ROOT / "tests/data"
        environment = {**os.environ, "PATH":
                       f"{os.path.dirname(self.program)}:{os.environ['PATH']}"}
        for name in ("my dumps", "it's", 'a "b" $HOME `id`', "x;y&z", "a*[b]?",
                     "tab\there", "back\\slash", "\u00e9t\u00e9"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                inside = pathlib.Path(folder, name)
                shutil.copytree(data / "flight/nccl_tp_fsdp", inside)
                log = shutil.copy(data / "logs/quiet.log", inside / "a log")
                shutil.copy(data / "ckpt_more/truncated.pt", inside / name)
                shutil.copy(data / "profile/train-rank0.pflog",
                            inside / "p.pflog")
                for command in (
                        ["trace", inside, "--log", log, "--hosts", "a x4"],
                        ["ckpt", "verify", inside / name],
                        ["profile", "report", inside / "p.pflog"]):
                    shown = subprocess.run(
                        [self.program, *command], cwd=folder,
                        capture_output=True, text=True).stdout
                    line, = re.findall(r"^Next: (.*)$", shown, re.MULTILINE)
                    pasted = subprocess.run(
                        ["bash", "-c", line], cwd=folder, env=environment,
                        capture_output=True, text=True)
                    self.assertEqual(pasted.stderr, "", line)
                    self.assertIn(pasted.returncode, (0, 1), line)

    def test_nothing_is_cut_in_a_pipe_or_with_all(self):
        for more in ([], ["--rank", "1"], ["--group", "mesh_tp"]):
            piped = self.run_it("trace", DUMPS, *more)
            self.assertNotIn("…", piped)
            self.assertNotIn("...", piped)
            everything = in_terminal(50, self.program, "trace", DUMPS, *more,
                                     "--all")
            self.assertNotIn("…", everything)

    def test_the_line_of_code_is_never_cut(self):
        for more in ([], ["--rank", "1"]):
            whole = LINE_OF_CODE.findall(self.run_it("trace", DUMPS, *more))
            for columns in (40, 60, 80, 100):
                with self.subTest(columns=columns, more=more):
                    narrow = in_terminal(columns, self.program, "trace", DUMPS,
                                         *more)
                    self.assertEqual(LINE_OF_CODE.findall(narrow), whole)

    def test_rows_fit_the_terminal(self):
        for columns in (80, 120):
            wide = [line for line in in_terminal(
                        columns, self.program, "trace", DUMPS).splitlines()
                    if len(line) > columns and not line.startswith("Next:")]
            self.assertEqual(wide, [])

    def test_a_rank_shows_what_it_is_stuck_in(self):
        jobs = ROOT / "tests/data/flight"
        shown = 0
        for job in sorted(jobs.iterdir()):
            answer = self.run_it("trace", str(job), "--json")
            for rank in re.findall(
                    r'"rank":(\d+),"host":\w+,"state":"waiting"', answer):
                report = self.run_it("trace", str(job), "--rank", rank)
                entries = report.split("\n\n")[1:]
                self.assertRegex("\n".join(entries), r"(scheduled|started) ",
                                 f"{job.name} rank {rank}")
                shown += 1
        self.assertGreater(shown, 20)


if __name__ == "__main__":
    Reports.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
