"""Reads the help of every command, found by the lists of commands in it.

    tests/cli/help_test.py build/dev/postflight
"""

import re
import subprocess
import sys
import unittest

WIDTH = 80
COMMANDS = re.compile(r"^Subcommands:\n((?:  .*\n)+)", re.MULTILINE)
EXAMPLES = re.compile(r"^Examples:\n((?:  .*\n)+)", re.MULTILINE)


def help_of(command):
    answer = subprocess.run([Help.program, *command, "--help"],
                            capture_output=True, text=True, check=True)
    assert answer.stderr == "", answer.stderr
    return answer.stdout


def commands_in(text):
    """Names and sentences of the commands that help lists."""
    found = COMMANDS.search(text)
    listed = re.sub(r"\n {3,}", " ", found.group(1)) if found else ""
    return [line.split(maxsplit=1) for line in listed.splitlines()]


class Help(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.helps = {}
        left = [(), ("generate",)]  # the second is in no list
        while left:
            command = left.pop()
            cls.helps[command] = help_of(command)
            left += [(*command, name)
                     for name, _ in commands_in(cls.helps[command])]

    def test_is_found_for_commands_and_theirs(self):
        for command in [("trace",), ("ckpt",), ("ckpt", "ls"),
                        ("stream", "decode")]:
            self.assertIn(command, self.helps)

    def test_fits_the_width(self):
        wide = [f"{' '.join(command)}: {line}"
                for command, text in self.helps.items()
                for line in text.splitlines() if len(line) > WIDTH]
        self.assertEqual(wide, [])

    def test_begins_with_a_sentence_and_examples(self):
        for command, text in self.helps.items():
            with self.subTest(command=command):
                self.assertRegex(text, r"\A[A-Z][^\n]*\.\n")
                examples = EXAMPLES.search(text).group(1)
                self.assertGreaterEqual(examples.count("  postflight"), 3)

    def test_lists_whole_sentences(self):
        for command, text in self.helps.items():
            for name, sentence in commands_in(text):
                with self.subTest(command=(*command, name)):
                    below = self.helps[(*command, name)]
                    self.assertEqual(sentence, below.splitlines()[0])

    def test_man_page_and_completions_have_the_same(self):
        generated = {what: subprocess.run([Help.program, "generate", what],
                                          capture_output=True, text=True,
                                          check=True).stdout
                     for what in ("man", "bash", "zsh", "fish")}
        for command, text in self.helps.items():
            if "[OPTIONS] SUBCOMMAND" in text or command == ("generate",):
                continue
            self.assertIn(f'.SS "postflight {" ".join(command)}"\n',
                          generated["man"])
            for option in re.findall(r"^  (?:-\w,)?--([\w-]+)", text, re.M):
                with self.subTest(command=command, option=option):
                    self.assertIn("\\-\\-" + option.replace("-", "\\-"),
                                  generated["man"])
                    self.assertIn("--" + option, generated["bash"])
                    self.assertIn("--" + option, generated["zsh"])
                    self.assertIn("-l " + option, generated["fish"])


if __name__ == "__main__":
    Help.program = sys.argv.pop(1)
    unittest.main()
