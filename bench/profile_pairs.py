#!/usr/bin/python3
"""What profiling costs a whole program, in CPU time.

    bench/profile_pairs.py [--pairs 30] [--results FILE] [--row NAME]...

Each pair is two processes in random order that do the same work, one of them
profiled. The program reports its own CPU time; the profiler's is counted
beside it. The median of the pairs' ratios has the 95 % interval that their
order gives, whatever their distribution.

CPython's speed depends on where its allocator has put what: the same loop takes
up to 15 % longer if the numbers that it makes and drops fill a pool exactly, and
what a profiler imports moves everything. Each process therefore starts from a
layout of its own: it keeps a random number of objects of many sizes.

With --results, ratios are kept in a file, and those of earlier runs are counted,
so that an hour of measuring can be had in slots of minutes.
"""
import argparse
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"
WORK = """
import random, resource
keep = [bytes(random.randrange(500)) for _ in range(random.randrange(4000))]
keep += [1 << 20 | i for i in range(random.randrange(4000))]
class Counter:
    def __init__(self): self.count = 0
    def add(self, number): self.count += number
def inner(n):
    x = 0
    for i in range(n): x += i * i & 7
    return x
def calls(n):
    counter = Counter()
    for i in range(n): counter.add(i & 255)
    return counter.count
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)
for _ in range(3_500):
    inner(10_000)
    calls(3_000)
    for _ in range(40): depth(40)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
"""
ROWS = {"99 Hz": ["--rate", "99"], "999 Hz": ["--rate", "999"],
        "999 Hz, --native": ["--rate", "999", "--native"]}


def run(front):
    """CPU time of the program, and of all processes together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*front, PYTHON, "-c", WORK], text=True, check=True,
                          stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (float(done.stdout), after.ru_utime + after.ru_stime
            - before.ru_utime - before.ru_stime)


def interval(ratios):
    ratios = sorted(ratios)
    half = 0.98 * math.sqrt(len(ratios))
    low = max(0, math.floor(len(ratios) / 2 - half) - 1)
    high = min(len(ratios) - 1, math.ceil(len(ratios) / 2 + half))
    return (f"{statistics.median(ratios):.3f} "
            f"[{ratios[low]:.3f}, {ratios[high]:.3f}]")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--results")
    parser.add_argument("--row", action="append", choices=list(ROWS))
    parser.add_argument("--program",
                        default=os.path.join(ROOT, "build/release/postflight"))
    options = parser.parse_args()
    pairs = {name: [] for name in options.row or ROWS}
    if options.results and os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as file:
            pairs = {**pairs, **json.load(file)}
    with tempfile.TemporaryDirectory() as folder:
        # All rows in turn, so that each sees the same minutes.
        for _ in range(options.pairs):
            for name in options.row or ROWS:
                profile = [options.program, "profile", "--quiet", "--force",
                           "-o", os.path.join(folder, "log.pflog"),
                           *ROWS[name], "--"]
                fronts = [[], profile]
                swapped = random.random() < 0.5
                times = [run(front) for front
                         in (reversed(fronts) if swapped else fronts)]
                alone, profiled = reversed(times) if swapped else times
                pairs[name].append((profiled[0] / alone[0],
                                    profiled[1] / alone[1]))
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            json.dump(pairs, file)
    print("| | pairs | program | with the profiler's own |\n|---|---|---|---|")
    for name, ratios in pairs.items():
        print(f"| {name} | {len(ratios)} "
              f"| {interval([pair[0] for pair in ratios])} "
              f"| {interval([pair[1] for pair in ratios])} |")
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    sys.exit(main())
