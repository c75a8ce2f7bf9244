#!/usr/bin/python3
"""Prints how long fr-trace takes, and torchfrtrace if it is installed.

usage: bench/fr_trace_table.py BUILD_FOLDER

The jobs are simulated by BUILD_FOLDER/bench/make_job: 256 ranks with 2,000
entries each, their dumps in memory. Ours is the best of five, torchfrtrace
runs once; it is looked for on the PATH, and comes with torch.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

JOBS = [
    ("--tp 8 --dp 32", "never_joined"),
    ("--tp 8 --dp 32", "healthy"),
    ("--tp 8 --pp 4 --dp 8", "never_joined"),
    ("--tp 8 --pp 4 --dp 8", "size_mismatch"),
]
PREFIX = ["-p", "nccl_trace_rank_"]


def run(command):
    """Returns seconds and peak megabytes."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = sys.argv[1]
    reference = shutil.which("torchfrtrace")
    print("| job | torchfrtrace | ours | times faster | memory |")
    print("|---|---|---|---|---|")
    for layout, fault in JOBS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "job")
            subprocess.run(
                [os.path.join(build, "bench", "make_job"), folder]
                + layout.split()
                + ["--entries", "3200", "--ring", "2000", "--fault", fault],
                check=True)
            os.remove(os.path.join(folder, "truth.json"))
            seconds, megabytes = min(run(
                [os.path.join(build, "postflight"), "fr-trace", folder]
                + PREFIX) for _ in range(5))
            row = ["`%s`, `%s`" % (layout, fault), "",
                   "%.3f s, %.0f MB" % (seconds, megabytes), "", ""]
            if reference:
                theirs = run([reference, folder] + PREFIX)
                row[1] = "%.1f s, %.0f MB" % theirs
                row[3] = "%.0f" % (theirs[0] / seconds)
                row[4] = "%.3f" % (megabytes / theirs[1])
            print("| %s |" % " | ".join(row), flush=True)


if __name__ == "__main__":
    main()
