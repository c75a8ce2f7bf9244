#!/usr/bin/python3
"""Prints how reading a job's dumps compares with CPython's pickle.load.

usage: bench/flight_table.py BUILD_FOLDER [SHAPE...]

Each shape is a job that BUILD_FOLDER/bench/make_job simulates. CPython only
loads the same files, one after the other, in one process without its garbage
collector, each result dropped before the next; ours reads them and builds the
model with two threads, the best of three. Both run in turns, so that a busy
machine slows both. Processor time tells more where the machine is not ours
alone: half of it is the time on two free cores.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

SHAPES = {
    "1024x2000": ["--tp", "8", "--pp", "4", "--dp", "32", "--entries", "2000"],
    "64x20000": ["--tp", "4", "--pp", "2", "--dp", "8", "--entries", "20000"],
    "4096x2000": ["--tp", "8", "--pp", "8", "--dp", "64", "--entries", "2000"],
}

LOADER = """
import gc, glob, pickle, sys, time
gc.disable()
total = 0
for path in sorted(glob.glob(sys.argv[1] + "/*_rank_*")):
    begin = time.perf_counter()
    with open(path, "rb") as file:
        dump = pickle.load(file)
    del dump
    total += time.perf_counter() - begin
print(total, time.process_time())
"""


def ours(build, folder):
    program = os.path.join(build, "bench", "flight_bench")
    answer = subprocess.run([program, folder, "2", "1"], check=True,
                            capture_output=True, text=True)
    return json.loads(answer.stdout)


def measure(build, shape, scratch):
    folder = os.path.join(scratch, shape)
    subprocess.run([os.path.join(build, "bench", "make_job"), folder]
                   + SHAPES[shape], check=True)
    os.remove(os.path.join(folder, "truth.json"))
    for path in glob.glob(folder + "/*"):  # into memory
        with open(path, "rb") as file:
            file.read()
    best = ours(build, folder)
    answer = subprocess.run([sys.executable, "-c", LOADER, folder], check=True,
                            capture_output=True, text=True)
    cpython, cpython_processor = map(float, answer.stdout.split())
    for _ in range(2):
        again = ours(build, folder)
        again["anonymous"] = max(again["anonymous"], best["anonymous"])
        again["processor"] = min(again["processor"], best["processor"])
        best = min(best, again, key=lambda run: run["seconds"])
    print("%-10s %6.0f MB %8.2f s %8.2f s %7.3f %8.2f s %8.2f s %7.3f %7.0f ns"
          " %6.2f" % (
              shape, best["bytes"] / 1e6, cpython, best["seconds"],
              best["seconds"] / cpython, cpython_processor, best["processor"],
              best["processor"] / 2 / cpython_processor,
              best["processor"] / best["entries"] * 1e9,
              best["anonymous"] / best["bytes"]), flush=True)
    shutil.rmtree(folder)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = sys.argv[1]
    print("%-10s %9s %10s %10s %7s %10s %10s %7s %10s %6s" % (
        "job", "dumps", "CPython", "ours", "ratio", "CPython", "ours", "half",
        "an entry", "memory"))
    print("%-10s %9s %30s %30s" % ("", "", "elapsed", "processor"))
    with tempfile.TemporaryDirectory() as scratch:
        for shape in sys.argv[2:] or SHAPES:
            measure(build, shape, scratch)


if __name__ == "__main__":
    main()
