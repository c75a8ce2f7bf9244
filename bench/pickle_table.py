#!/usr/bin/env python3
"""Times our pickle machine against CPython's pickle.loads on the same bytes.

usage: bench/pickle_table.py BUILD_FOLDER [FILE...]

Prints a table in Markdown: the best of several rounds of each, taken in turns
so that a noisy moment hurts both. CPython's garbage collector is off and each
result is dropped before the next.
"""

import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def python_seconds(data):
    best = float("inf")
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        start = time.perf_counter()
        value = pickle.loads(data)
        best = min(best, time.perf_counter() - start)
        del value
    return best


def our_seconds(program, path):
    """Best seconds of each kind of load, and the counters of the last run."""
    answer = subprocess.run(
        [program, path, "--benchmark_format=json",
         "--benchmark_filter=^(reused|fresh)/", "--benchmark_min_time=0.002",
         "--benchmark_repetitions=60"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    best, counters = {}, {}
    for run in json.loads(answer.stdout)["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        how = run["name"].split("/", 1)[0]
        best[how] = min(best.get(how, float("inf")), run["real_time"] * 1e-9)
        counters[how] = run
    return best, counters


def measure(program, name, path):
    with open(path, "rb") as file:
        data = file.read()
    python, ours, counters = float("inf"), {}, {}
    for _ in range(ROUNDS):
        python = min(python, python_seconds(data))
        best, counters = our_seconds(program, path)
        for how, seconds in best.items():
            ours[how] = min(ours.get(how, float("inf")), seconds)
    opcodes = counters["reused"]["opcodes"]
    print("| %s | %d KB | %.2f ms | %.3f ms | %.3f ms | **%.1f** | %.1f "
          "| %.2f ns | %.1f |" % (
              name, len(data) // 1000, python * 1e3, ours["reused"] * 1e3,
              ours["fresh"] * 1e3, python / ours["reused"],
              python / ours["fresh"], ours["reused"] / opcodes * 1e9,
              counters["fresh"]["memory_per_byte"]))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = sys.argv[1]
    program = os.path.join(build, "bench", "pickle_bench")
    gc.disable()
    print("| dump | size | CPython %s | ours, arena reused | ours, fresh "
          "| ratio | ratio, fresh | per opcode | memory per input byte |"
          % sys.version.split()[0])
    print("|---|---|---|---|---|---|---|---|---|")
    if sys.argv[2:]:
        for path in sys.argv[2:]:
            measure(program, os.path.basename(path), path)
        return
    folder = os.path.join(ROOT, "tests", "data", "flight", "nccl_long_run")
    for rank in range(4):
        measure(program, "nccl_long_run, rank %d" % rank,
                os.path.join(folder, "nccl_trace_rank_%d" % rank))
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "dump")
        with open(path, "wb") as file:
            subprocess.run([os.path.join(build, "bench", "make_job"), "-",
                            "--entries", "2000"], stdout=file, check=True)
        measure(program, "synthetic, 2,000 entries", path)


if __name__ == "__main__":
    main()
