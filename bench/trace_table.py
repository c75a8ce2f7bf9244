#!/usr/bin/python3
"""Prints how long `postflight trace` takes from a folder of dumps to the verdict.

usage: bench/trace_table.py BUILD_FOLDER [SHAPE...]

Each shape is a job with a fault that BUILD_FOLDER/bench/make_job simulates.
Ours is the whole program, `postflight trace --json`, on two threads, the best
of three; CPython only loads the same files (not where that would take minutes).
Both run in turns. Half of our processor time is the time on two free cores.
"""

import glob
import os
import subprocess
import sys
import tempfile
import time

from flight_table import LOADER

FAULT = ["--fault", "never_joined"]
SHAPES = {
    "1024x2000": ["--tp", "8", "--pp", "4", "--dp", "32", "--entries", "3200",
                  "--ring", "2000"],
    "4096x500": ["--tp", "8", "--pp", "8", "--dp", "64", "--entries", "800",
                 "--ring", "500"],
    "16384x500": ["--tp", "8", "--pp", "8", "--dp", "256", "--entries", "800",
                  "--ring", "500"],
}
TOO_LONG_FOR_CPYTHON = {"16384x500"}


def trace(build, folder):
    """Returns wall-clock and CPU seconds, peak bytes and the verdict."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [os.path.join(build, "postflight"), "trace", folder, "--json",
         "--threads", "2"], stdout=subprocess.PIPE)
    answer = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    elapsed = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit("postflight trace ended with %d" % child.returncode)
    kind = answer.split(b'"kind":', 1)[1].split(b'"', 2)[1].decode()
    return (elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
            kind)


def measure(build, shape, scratch):
    folder = os.path.join(scratch, shape)
    subprocess.run([os.path.join(build, "bench", "make_job"), folder]
                   + SHAPES[shape] + FAULT, check=True)
    os.remove(os.path.join(folder, "truth.json"))
    size = 0
    for path in glob.glob(folder + "/*"):  # into memory
        with open(path, "rb") as file:
            size += len(file.read())
    runs = [trace(build, folder)]
    cpython = None
    if shape not in TOO_LONG_FOR_CPYTHON:
        loaded = subprocess.run([sys.executable, "-c", LOADER, folder],
                                check=True, capture_output=True, text=True)
        cpython = tuple(map(float, loaded.stdout.split()))
    runs += [trace(build, folder) for _ in range(2)]
    elapsed = min(run[0] for run in runs)
    processor = min(run[1] for run in runs)
    ranks, entries = map(int, shape.split("x"))
    print("%-10s %6.0f MB %8s %8.2f s %7s %8s %8.2f s %7s %7.0f ns %7.0f MB"
          "  %s" % (
              shape, size / 1e6, "%.2f s" % cpython[0] if cpython else "-",
              elapsed, "%.3f" % (elapsed / cpython[0]) if cpython else "-",
              "%.2f s" % cpython[1] if cpython else "-", processor,
              "%.3f" % (processor / 2 / cpython[1]) if cpython else "-",
              processor / ranks / entries * 1e9,
              max(run[2] for run in runs) / 1e6, runs[0][3]), flush=True)
    subprocess.run(["rm", "-r", folder], check=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("%-10s %9s %8s %10s %7s %8s %10s %7s %10s %10s  %s" % (
        "job", "dumps", "CPython", "ours", "ratio", "CPython", "ours", "half",
        "an entry", "peak", "verdict"))
    print("%-10s %9s %27s %27s" % ("", "", "elapsed", "processor"))
    with tempfile.TemporaryDirectory() as scratch:
        for shape in sys.argv[2:] or SHAPES:
            measure(sys.argv[1], shape, scratch)


if __name__ == "__main__":
    main()
