#!/usr/bin/python3
"""What profiling costs a whole program, in CPU time.

    bench/profile_pairs.py [--pairs 30] [--program build/release/postflight]

Each pair is two processes in random order that do the same work, one of them
profiled. The program reports its own CPU time; the profiler's is counted
beside it. The median of the pairs' ratios has the 95 % interval that their
order gives, whatever their distribution.
"""
import argparse
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
import resource
def inner(n):
    x = 0
    for i in range(n): x += i * i & 7
    return x
for _ in range(3_000): inner(10_000)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
"""
ROWS = (("99 Hz", ["--rate", "99"]), ("999 Hz", ["--rate", "999"]),
        ("999 Hz, --native", ["--rate", "999", "--native"]))


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
    parser.add_argument("--program",
                        default=os.path.join(ROOT, "build/release/postflight"))
    options = parser.parse_args()
    print("| | program | with the profiler's own |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, more in ROWS:
            profile = [options.program, "profile", "--quiet", "--force", "-o",
                       os.path.join(folder, "log.pflog"), *more, "--"]
            pairs = []
            for _ in range(options.pairs):
                fronts = [[], profile]
                swapped = random.random() < 0.5
                times = [run(front)
                         for front in (reversed(fronts) if swapped else fronts)]
                alone, profiled = reversed(times) if swapped else times
                pairs.append((profiled[0] / alone[0], profiled[1] / alone[1]))
            print(f"| {name} | {interval([pair[0] for pair in pairs])} "
                  f"| {interval([pair[1] for pair in pairs])} |", flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    sys.exit(main())
