#!/usr/bin/python3
"""Runs commands and compares their output with the expected output.

    tests/golden/run.py                      all, with build/release/postflight
    tests/golden/run.py pickle README        only those with such a name
    tests/golden/run.py --update             record the actual output
    tests/golden/run.py --program build/dev/postflight

There are two sources of commands. A folder tests/golden/<group>/<name> contains
`cmd`, run by sh, its `stdout`, and `stderr` and `exit` if they are not empty
and not zero. README.md and docs/*.md contain blocks marked `console`:

    $ postflight pickle broken.pt
    what it prints, on stdout or stderr
    ...
    $ echo $?
    2

A line `...` matches any number of lines. In a document, a command whose exit
status is not 0 is followed by `$ echo $?`. All run in the root of the
repository, without a terminal, in 80 columns, with their own empty folder in
$TMPDIR, whose name appears as `$TMPDIR` in the output.
"""

import argparse
import difflib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_SECONDS = 120
FENCE = "```"
STATUS = "echo $?"


def main(arguments):
    parser = argparse.ArgumentParser(
        description="Compares what commands print with what is written down.")
    parser.add_argument("names", nargs="*", help="parts of names to run")
    parser.add_argument("--update", action="store_true",
                        help="write down what was printed")
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/postflight")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="the repository")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    if not os.access(options.program, os.X_OK):
        sys.exit(f"{options.program} is not there; build it, or name another "
                 "with --program")
    shell = Shell(root, options.program.resolve().parent)

    def chosen(path):
        name = str(path.relative_to(root))
        return not options.names or any(part in name for part in options.names)

    folders = sorted(cmd.parent for cmd in (root / "tests/golden").rglob("cmd"))
    documents = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    outcome = Outcome(root, options.update)
    for folder in filter(chosen, folders):
        run_folder(folder, shell, outcome)
    for document in filter(chosen, documents):
        if document.exists():
            run_document(document, shell, outcome)
    return outcome.close()


class Shell:
    """Runs commands the same way everywhere."""

    def __init__(self, root, program_folder):
        self.root = root
        # Sanitizers read their options from the environment; nothing else in
        # it may change the output of a command.
        self.environment = {name: value for name, value in os.environ.items()
                            if name.endswith("SAN_OPTIONS")}
        self.environment |= {
            "PATH": f"{program_folder}:/usr/local/bin:/usr/bin:/bin",
            "COLUMNS": "80", "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC",
        }

    def run(self, command, folder, stderr=subprocess.PIPE):
        """Returns the exit status and the texts of stdout and stderr."""
        with subprocess.Popen(
                ["/bin/sh", "-c", command], cwd=self.root,
                env=self.environment | {"TMPDIR": folder, "HOME": folder},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                start_new_session=True) as process:
            try:
                streams = process.communicate(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                sys.exit(f"{command}\nran for more than {TIMEOUT_SECONDS} s")
        return process.returncode, *(
            (stream or b"").decode(errors="backslashreplace")
            .replace(folder, "$TMPDIR") for stream in streams)


class Outcome:
    """Counts, and prints differences."""

    def __init__(self, root, update):
        self.root = root
        self.update = update
        self.commands = 0
        self.differ = set()  # the numbers of commands
        self.updated = []

    def difference(self, name, wanted, printed):
        self.differ.add(self.commands)
        print(name)
        for line in difflib.unified_diff(
                fill(wanted, printed), printed, "written down", "printed",
                lineterm=""):
            print(f"  {line}")
        print()

    def write(self, path, text):
        path.write_text(text)
        self.updated.append(str(path.relative_to(self.root)))

    def close(self):
        for name in self.updated:
            print(f"wrote {name}")
        if self.commands == 0:
            print("no command was run: nothing here has such a name")
            return 1
        if self.differ:
            print(f"{len(self.differ)} of {self.commands} commands differ; if "
                  "they are right, run tests/golden/run.py --update")
            return 1
        print(f"{self.commands} commands print what is written down")
        return 0


def run_folder(folder, shell, outcome):
    with tempfile.TemporaryDirectory() as temporary:
        status, stdout, stderr = shell.run((folder / "cmd").read_text(),
                                           temporary)
    outcome.commands += 1
    printed = {"stdout": stdout, "stderr": stderr,
               "exit": f"{status}\n" if status else ""}
    for name, text in printed.items():
        path = folder / name
        wanted = path.read_text().split("\n") if path.exists() else [""]
        lines = text.split("\n")
        if agree(wanted, lines):
            continue
        if not outcome.update:
            outcome.difference(path.relative_to(outcome.root), wanted, lines)
        elif text or name == "stdout":
            outcome.write(path, "\n".join(shorten(wanted, lines)))
        else:
            path.unlink()


def run_document(document, shell, outcome):
    name = document.relative_to(outcome.root)
    lines = document.read_text().split("\n")
    kept = []
    at = 0
    while at < len(lines):
        line = lines[at]
        kept.append(line)
        at += 1
        if line.strip() == FENCE + "console" and line != line.strip():
            sys.exit(f"{name}:{at}: an indented console block would not be "
                     "run; move it to the margin")
        if line != FENCE + "console":
            continue
        try:
            end = lines.index(FENCE, at)
        except ValueError:
            sys.exit(f"{name}:{at}: the console block is not closed")
        kept += run_block(f"{name}:", at + 1, lines[at:end], shell, outcome)
        at = end
    if outcome.update and kept != lines:
        outcome.write(document, "\n".join(kept))


def run_block(place, first, lines, shell, outcome):
    """Runs the commands of a block; returns it as it should read."""
    if not lines or not lines[0].startswith("$ "):
        sys.exit(f"{place}{first}: a console block starts with `$ `")
    commands = split_commands(lines)
    kept = []
    status = 0
    with tempfile.TemporaryDirectory() as temporary:
        for index, (number, command, wanted) in enumerate(commands):
            # Each command has its own shell, which is given the exit status of
            # the previous one.
            previous = status
            status, printed, _ = shell.run(
                f"(exit {previous})\n" + "\n".join(command)[2:], temporary,
                stderr=subprocess.STDOUT)
            outcome.commands += 1
            printed = printed.removesuffix("\n")
            printed = printed.split("\n") if printed else []
            followed = (index + 1 < len(commands)
                        and commands[index + 1][1] == ["$ " + STATUS])
            if status and not followed:
                printed += ["$ " + STATUS, str(status)]
            kept += command
            if agree(wanted, printed):
                kept += wanted
                continue
            kept += shorten(wanted, printed)
            if not outcome.update:
                outcome.difference(f"{place}{first + number}: {command[0]}",
                                   wanted, printed)
    return kept


def split_commands(lines):
    """Groups a block's lines: (line number, command lines, output lines)."""
    commands = []
    continued = False
    for number, line in enumerate(lines):
        if continued:
            commands[-1][1].append(line)
        elif line.startswith("$ "):
            commands.append((number, [line], []))
        else:
            commands[-1][2].append(line)
            continue
        continued = line.endswith("\\")
    return commands


def chunks_of(wanted):
    """Splits lines at each `...`."""
    chunks = [[]]
    for line in wanted:
        if line == "...":
            chunks.append([])
        else:
            chunks[-1].append(line)
    return chunks


def find(chunk, printed, start):
    """The first index from `start` on at which `chunk` occurs, or None."""
    for at in range(start, len(printed) - len(chunk) + 1):
        if printed[at:at + len(chunk)] == chunk:
            return at
    return None


def agree(wanted, printed):
    first, *rest = chunks_of(wanted)
    if not rest:
        return wanted == printed
    if printed[:len(first)] != first:
        return False
    at = len(first)
    *middle, last = rest
    for chunk in middle:
        place = find(chunk, printed, at)
        if place is None:
            return False
        at = place + len(chunk)
    return at + len(last) <= len(printed) and printed[
        len(printed) - len(last):] == last


def fill(wanted, printed):
    """Replaces each `...` by the lines it matches, for a diff without noise."""
    filled = []
    at = 0
    for index, line in enumerate(wanted):
        if line != "...":
            filled.append(line)
            at += 1
            continue
        after = wanted[index + 1:index + 2]
        place = find(after, printed, at) if after else len(printed)
        if place is None:
            filled.append(line)
        else:
            filled += printed[at:place]
            at = max(at, place)
    return filled


def shorten(wanted, printed):
    """Keeps each `...` of `wanted` whose neighbours are still printed."""
    kept = []
    at = 0
    chunks = chunks_of(wanted)
    for before, after in zip(chunks, chunks[1:]):
        start = at
        # As much of the text before as is still there, but at least a line.
        for count in range(len(before), 0, -1):
            start = find(before[-count:], printed, at)
            if start is not None:
                start += count
                break
        if start is None:
            continue
        end = find(after[:1], printed, start) if after else len(printed)
        if end is None:
            continue
        kept += printed[at:start] + ["..."]
        at = end
    return kept + printed[at:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
