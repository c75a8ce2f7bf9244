"""Tests of run.py, with a shell script in the program's place."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent / "run.py"

PROGRAM = """#!/bin/sh
case $1 in
  count) seq $2 ;;
  fail) echo "it broke" >&2; exit 2 ;;
  where) echo "$TMPDIR $COLUMNS ${NO_COLOR-unset}"; pwd ;;
  keep) echo kept > $TMPDIR/file ;;
  show) cat $TMPDIR/file ;;
esac
"""


class Run(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name).resolve()
        (self.root / "bin").mkdir()
        (self.root / "docs").mkdir()
        self.program = self.root / "bin/postflight"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def run_it(self, *arguments):
        done = subprocess.run(
            [sys.executable, RUN, "--root", self.root, "--program",
             self.program, *arguments],
            env={"NO_COLOR": "1", "COLUMNS": "200"}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def case(self, **files):
        folder = self.root / "tests/golden/group/name"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    def document(self, *lines):
        path = self.root / "README.md"
        path.write_text("\n".join(["# Title", "```console", *lines, "```", ""]))
        return path

    def block(self):
        return (self.root / "README.md").read_text().split("\n")[2:-2]

    def test_passes_what_is_the_same(self):
        self.case(cmd="postflight count 2", stdout="1\n2\n")
        self.assertEqual(self.run_it(),
                         (0, "1 commands print what is written down\n"))

    def test_shows_a_difference(self):
        self.case(cmd="postflight count 3", stdout="1\n...\nthree\n")
        self.assertEqual(self.run_it(), (1, """\
tests/golden/group/name/stdout
  --- written down
  +++ printed
  @@ -1,4 +1,4 @@
   1
  -...
  -three
  +2
  +3
   

1 of 1 commands differ; if they are right, run tests/golden/run.py --update
"""))

    def test_compares_stderr_and_exit(self):
        self.case(cmd="postflight fail", stdout="")
        self.assertEqual(self.run_it()[0], 1)
        self.case(stderr="it broke\n")
        self.assertEqual(self.run_it()[0], 1)
        self.case(exit="2\n")
        self.assertEqual(self.run_it()[0], 0)

    def test_notices_what_is_no_longer_printed(self):
        self.case(cmd="postflight count 1", stdout="1\n", stderr="a warning\n")
        self.assertEqual(self.run_it()[0], 1)

    def test_notices_a_missing_newline(self):
        self.case(cmd="printf text", stdout="text\n")
        self.assertEqual(self.run_it()[0], 1)

    def test_skips_lines_at_dots(self):
        for stdout, status in [
                ("...\n", 0), ("1\n...\n", 0), ("...\n9\n", 0),
                ("1\n...\n4\n5\n...\n9\n", 0), ("1\n...\n2\n...\n", 0),
                ("2\n...\n", 1), ("...\n8\n", 1), ("1\n...\n5\n4\n...\n", 1),
                ("...\n9\n...\n9\n", 1)]:
            with self.subTest(stdout):
                self.case(cmd="postflight count 9", stdout=stdout)
                self.assertEqual(self.run_it()[0], status)

    def test_runs_in_the_same_surroundings_everywhere(self):
        self.case(cmd="postflight where",
                  stdout=f"$TMPDIR 80 unset\n{self.root}\n")
        self.assertEqual(self.run_it()[0], 0)

    def test_update_writes_what_was_printed(self):
        folder = self.case(cmd="postflight fail", stdout="old\n")
        self.assertEqual(self.run_it("--update")[0], 0)
        self.assertEqual({path.name: path.read_text()
                          for path in folder.iterdir()},
                         {"cmd": "postflight fail", "stdout": "",
                          "stderr": "it broke\n", "exit": "2\n"})
        self.case(cmd="postflight count 1")
        self.run_it("--update")
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"cmd", "stdout"})

    def test_update_keeps_dots_between_lines_that_remain(self):
        folder = self.case(cmd="postflight count 9",
                           stdout="one\n2\n...\n8\n...\n")
        self.assertEqual(self.run_it("--update")[0], 0)
        self.assertEqual((folder / "stdout").read_text(), "1\n2\n...\n8\n...\n")

    def test_runs_only_what_is_named(self):
        self.case(cmd="postflight count 1", stdout="")
        self.document("$ postflight count 1", "1")
        self.assertEqual(self.run_it("README")[0], 0)
        self.assertEqual(
            self.run_it("nowhere"),
            (1, "no command was run: nothing here has such a name\n"))

    def test_runs_documents(self):
        self.document("$ postflight count 2", "1", "2",
                      "$ postflight count \\", "    9", "1", "...", "9")
        self.assertEqual(self.run_it(),
                         (0, "2 commands print what is written down\n"))

    def test_shows_where_a_document_differs(self):
        self.document("$ true", "$ postflight count 1", "2")
        status, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("README.md:4: $ postflight count 1\n", text)

    def test_leaves_other_blocks_alone(self):
        (self.root / "README.md").write_text("```sh\n$ false\n```\n")
        self.document("$ true")
        (self.root / "docs/more.md").write_text("```sh\nfalse\n```\n")
        self.assertEqual(self.run_it()[0], 0)

    def test_wants_a_status_that_is_not_zero_shown(self):
        self.document("$ postflight fail", "it broke")
        self.assertEqual(self.run_it()[0], 1)
        self.assertEqual(self.run_it("--update")[0], 0)
        self.assertEqual(self.block(), ["$ postflight fail", "it broke",
                                        "$ echo $?", "2"])
        self.assertEqual(self.run_it()[0], 0)

    def test_compares_a_status_that_is_shown(self):
        self.document("$ postflight fail", "it broke", "$ echo $?", "1")
        self.assertEqual(self.run_it()[0], 1)

    def test_commands_of_a_block_share_a_folder(self):
        self.document("$ postflight keep", "$ postflight show", "kept")
        self.assertEqual(self.run_it()[0], 0)

    def test_update_rewrites_documents(self):
        self.document("$ postflight count 2", "1", "$ postflight count 4",
                      "one", "2", "...", "4")
        self.assertEqual(self.run_it("--update")[0], 0)
        self.assertEqual(self.block(), [
            "$ postflight count 2", "1", "2",
            "$ postflight count 4", "1", "2", "...", "4"])

    def test_refuses_a_block_that_would_not_run(self):
        path = self.document("$ true")
        path.write_text(" ```console\n $ false\n ```\n")
        self.assertEqual(
            self.run_it(),
            (1, "README.md:1: an indented console block would not be run; "
                "move it to the margin\n"))

    def test_says_so_when_there_is_no_program(self):
        self.program.unlink()
        self.assertEqual(
            self.run_it(),
            (1, f"{self.program} is not there; build it, or name another with "
                "--program\n"))


if __name__ == "__main__":
    unittest.main()
