"""Presses Tab in bash, zsh and fish, whichever are installed.

    tests/cli/completion_test.py build/dev/postflight
"""

import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TIMEOUT_SECONDS = 20

BASH = r"""
source "$COMPLETIONS"
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 ))
_postflight
complete -p postflight | grep -q -- '-o default' && files=1
if (( ${#COMPREPLY[@]} == 0 )) && [[ $files ]]; then
  compgen -f -- "${@: -1}"
else
  printf '%s\n' "${COMPREPLY[@]}"
fi
"""

# Completion runs only inside zsh's line editor, so it is given a terminal; what
# it offers is written to a file.
ZSH = r"""
PROMPT= ; unsetopt prompt_cr prompt_sp
fpath=($FOLDER $fpath); autoload -Uz compinit; compinit -u -D
bindkey '^I' complete-word; zstyle ':completion:*' verbose no; LISTMAX=10000
compadd() {
  local -a found; local one; builtin compadd -O found "$@"
  for one in $found; do print -r -- "$one" >> $FOLDER/offered; done
  builtin compadd "$@"
}
done-now() { print DONE > $FOLDER/done; }
zle -N done-now; bindkey '^X' done-now
"""


class Completion:
    """What the tests want of each shell: completions of a line."""

    shell = None
    program = None

    @classmethod
    def setUpClass(cls):
        if shutil.which(cls.shell) is None:
            raise unittest.SkipTest(f"{cls.shell} is not installed")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "job").mkdir()
        (cls.folder / "job" / "model.pt").touch()
        (cls.folder / "job" / "my_dumps").mkdir()
        script = subprocess.run([cls.program, "generate", cls.shell],
                                capture_output=True, check=True).stdout
        cls.script = cls.folder / "_postflight"
        cls.script.write_bytes(script)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_shell(self, *command, **environment):
        return subprocess.run(
            command, cwd=self.folder / "job", capture_output=True, text=True,
            timeout=60, env={**os.environ, "HOME": str(self.folder),
                             "FOLDER": str(self.folder),
                             "COMPLETIONS": str(self.script),
                             "TERM": "xterm", "COLUMNS": "200",
                             **environment}).stdout

    def test_completes_commands(self):
        found = self.complete("postflight", "")
        for command in ("trace", "ckpt", "stacks", "doctor", "profile",
                        "help"):
            self.assertIn(command, found)
        self.assertNotIn("generate", found)
        self.assertIn("trace", self.complete("postflight", "tr"))

    def test_completes_commands_below(self):
        found = self.complete("postflight", "ckpt", "")
        self.assertIn("verify", found)
        self.assertNotIn("trace", found)
        self.assertIn("report", self.complete("postflight", "profile", "r"))

    def test_completes_options(self):
        self.assertIn("--rank", self.complete("postflight", "trace", "--r"))
        found = self.complete("postflight", "ckpt", "read", "--")
        self.assertIn("--template", found)
        self.assertNotIn("--strict", found)

    def test_completes_the_own_options_of_profile(self):
        found = self.complete("postflight", "profile", "--")
        for option in ("--pid", "--rate", "--mode", "--native"):
            self.assertIn(option, found)
        below = self.complete("postflight", "profile", "report", "--")
        self.assertIn("--top", below)
        self.assertNotIn("--rate", below)

    def test_completes_values(self):
        found = self.complete("postflight", "profile", "--mode", "")
        self.assertIn("wall", found)
        self.assertNotIn("model.pt", found)

    def test_completes_names_of_files(self):
        self.assertIn("model.pt",
                      self.complete("postflight", "ckpt", "ls", "mo"))
        self.assertTrue({"my_dumps", "my_dumps/"} &
                        set(self.complete("postflight", "trace", "my")))
        self.assertIn("model.pt", self.complete(
            "postflight", "ckpt", "read", "--template", "mo"))
        self.assertIn("model.pt", self.complete(
            "postflight", "profile", "report", "mo"))

    def test_completes_commands_after_help(self):
        self.assertIn("trace", self.complete("postflight", "help", "tr"))


class Bash(Completion, unittest.TestCase):
    shell = "bash"

    def complete(self, *words):
        return self.run_shell("bash", "--norc", "-c", BASH, "bash",
                              *words).split()


class Fish(Completion, unittest.TestCase):
    shell = "fish"

    def complete(self, *words):
        out = self.run_shell(
            "fish", "--no-config", "-c",
            'source "$COMPLETIONS"; complete -C "$argv"', *words)
        return [line.split("\t")[0] for line in out.splitlines()]


class Zsh(Completion, unittest.TestCase):
    shell = "zsh"

    def complete(self, *words):
        for name in ("offered", "done"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / ".zshrc").write_text(ZSH)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder / "job")
            os.environ |= {"ZDOTDIR": str(self.folder), "TERM": "dumb",
                           "FOLDER": str(self.folder), "COLUMNS": "200"}
            os.execvp("zsh", ["zsh", "-d", "-i"])
        # The last key is read when the completion before it is done.
        os.write(terminal, " ".join(words).encode() + b"\t\x18")
        end = time.monotonic() + TIMEOUT_SECONDS
        while (not (self.folder / "done").exists()
               and time.monotonic() < end):
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65536)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
        offered = self.folder / "offered"
        return offered.read_text().split() if offered.exists() else []


if __name__ == "__main__":
    Completion.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
