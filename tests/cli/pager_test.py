"""Runs `postflight entries` in a terminal and looks at what its pager gets.

usage: pager_test.py PROGRAM
"""

import os
import pathlib
import pty
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOB = str(ROOT / "tests/data/flight/gloo_mesh_hang")


def in_terminal(program, *arguments, **variables):
    """Returns the exit status and what a terminal would have shown."""
    process, terminal = pty.fork()
    if process == 0:
        os.execve(program, [program, *arguments],
                  {"PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "80",
                   **variables})
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not piece:
            break
        shown += piece
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def main():
    program = os.path.abspath(sys.argv[1])
    status, shown = in_terminal(program, "entries", JOB, PAGER="sed s/^/paged/")
    assert status == 0, status
    lines = shown.splitlines()
    assert len(lines) > 10, shown
    assert all(line.startswith("paged") for line in lines), shown
    assert "\x1b[" in shown, "no colour in a terminal"

    for arguments, variables in (
            (["--no-pager"], {"PAGER": "sed s/^/paged/"}),
            (["--json"], {"PAGER": "sed s/^/paged/"}),
            ([], {"PAGER": "cat"}), ([], {"PAGER": ""})):
        status, shown = in_terminal(program, "entries", JOB, *arguments,
                                    **variables)
        assert status == 0, status
        assert shown and "paged" not in shown, shown

    # A pager that has seen enough ends it well.
    status, shown = in_terminal(
        program, "entries", str(ROOT / "tests/data/flight/nccl_long_run"),
        PAGER="head -n 1")
    assert status == 0, status
    assert len(shown.splitlines()) == 1, shown
    print("the pager gets what it should")


if __name__ == "__main__":
    main()
