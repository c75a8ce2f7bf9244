#!/usr/bin/python3
"""Measures what profiling costs the profiled program, and how true it is.

    bench/profile_table.py [--pairs 15] [--program build/release/postflight]

Each cost is a ratio of CPU times of the same work in the same run: pairs of a
profiled and a plain run, in turns, with a 95 % confidence interval of the mean
of the pairs' ratios (Student's t). The program measures itself, so what the
profiler uses beside it does not count. On a machine with other work to do the
interval is wide; beside it stands the ratio of the fastest run of each kind,
which other work disturbs least. perf (linux-perf) is measured beside us.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
T95 = {5: 2.776, 8: 2.365, 10: 2.262, 15: 2.145, 20: 2.093, 30: 2.045,
       40: 2.023, 60: 2.001}

WORK = """
import sys, threading, time
depth, idle = int(sys.argv[1]), int(sys.argv[2])
gate = threading.Event()
for _ in range(idle):
    threading.Thread(target=gate.wait, daemon=True).start()
sys.setrecursionlimit(10000)
def spin(n):
    x = 0
    for i in range(n):
        x += i * i & 7
    return x
def down(n):
    return down(n - 1) if n > 1 else spin(COUNT)
start = time.process_time()
for _ in range(10):
    down(depth)
print("cpu", time.process_time() - start)
"""

# Two chains of calls: a leaf below the other's parent is impossible.
CHAINS = """
def leaf_a(): pass
def leaf_b(): pass
def parent_a():
    leaf_a(); leaf_a(); leaf_a()
def parent_b():
    leaf_b(); leaf_b(); leaf_b()
"""

FLUTTER = CHAINS + """
import sys, time
sys.setrecursionlimit(10000)
def down(n):
    if n > 1:
        return down(n - 1)
    end = time.time() + 20
    while time.time() < end:
        for _ in range(1000):
            parent_a()
            parent_b()
down(int(sys.argv[1]))
"""

GENERATORS = """
import sys, time
def spin(n):
    x = 0
    for i in range(n):
        x += i * i & 7
    yield x
def down(n):
    yield from (down(n - 1) if n > 1 else spin(COUNT))
start = time.process_time()
for _ in range(10):
    list(down(int(sys.argv[1])))
print("cpu", time.process_time() - start)
"""

SPLIT = """
import time
def work(n):
    x = 0
    for i in range(n): x += i
def heavy(): work(70000)
def light(): work(30000)
end = time.process_time() + 8
while time.process_time() < end:
    heavy()
    light()
"""

PHASES = """
import time
from postflight_phase import phase
for _ in range(1000):
    with phase("warm", "0/0"): pass
start = time.perf_counter()
for _ in range(10000):
    with phase("x", "0/0"): pass
print("cpu", (time.perf_counter() - start) / 10000)
"""


def cpu_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True)
    line = next(line for line in done.stdout.splitlines()
                if line.startswith("cpu "))
    return float(line.split()[1])


def pair(profiled, plain, plain_first):
    """The times of both runs, each being the first every other time."""
    if plain_first:
        below = cpu_of(plain)
        return cpu_of(profiled), below
    above = cpu_of(profiled)
    return above, cpu_of(plain)


def interval(ratios):
    mean = statistics.mean(ratios)
    t = T95.get(len(ratios), 2.1)
    return mean, t * statistics.stdev(ratios) / math.sqrt(len(ratios))


def counters(program, log):
    done = subprocess.run([program, "profile", "report", "--json", log],
                          stdout=subprocess.PIPE, check=True)
    answer = json.loads(done.stdout)
    return {one["name"]: int(one["count"]) for one in answer["counters"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--program",
                        default=os.path.join(ROOT, "build/release/postflight"))
    parser.add_argument("--python", default="/usr/bin/python3")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    folder = tempfile.mkdtemp()
    log = os.path.join(folder, "log")

    def script(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("COUNT", "300_000"))
        return path

    work = script("work.py", WORK)
    generators = script("generators.py", GENERATORS)

    def profiled(*arguments):
        return [program, "profile", "-q", "-o", log, *arguments, "--"]

    rows = [
        ("99 Hz", profiled("--rate", "99"), (work, "20", "0")),
        ("999 Hz", profiled("--rate", "999"), (work, "20", "0")),
        ("999 Hz, 160 threads", profiled("--rate", "999"),
         (work, "20", "160")),
        ("999 Hz, 60 frames", profiled("--rate", "999"), (work, "58", "0")),
        ("999 Hz, 470 frames", profiled("--rate", "999"), (work, "468", "0")),
        ("999 Hz, 60 generators", profiled("--rate", "999"),
         (generators, "58")),
        ("999 Hz, from outside",
         profiled("--rate", "999", "--engine", "external"), (work, "20", "0")),
    ]
    if shutil.which("perf"):
        rows.append(("perf record -F 999 -g",
                     ["perf", "record", "-q", "-F", "999", "-g", "-o",
                      os.path.join(folder, "perf.data"), "--"],
                     (work, "20", "0")))
    print("%-24s %16s %8s %10s %8s %14s" % ("", "CPU ratio", "fastest",
                                            "samples", "lost",
                                            "us in handler*"))
    for name, prefix, arguments in rows:
        plain = [options.python, *arguments]
        times, counts = [], []
        for i in range(options.pairs):
            times.append(pair(prefix + plain, plain, i % 2 == 1))
            if prefix[0] == program:
                counts.append(counters(program, log))
        mean, half = interval([above / below for above, below in times])
        fastest = (min(above for above, _ in times)
                   / min(below for _, below in times))
        row = "%-24s %8.3f ± %.3f %8.3f" % (name, mean, half, fastest)
        if counts:
            row += " %10d %8d" % (sum(one["samples"] for one in counts),
                                  sum(one["lost"] for one in counts))
            medians = [one["handler_median_ns"] for one in counts
                       if "handler_median_ns" in one]
            if medians:
                row += " %14.2f" % (statistics.median(medians) / 1000)
        print(row, flush=True)

    print("* the median")
    def stacks():
        done = subprocess.run([program, "profile", "report", log, "--to",
                               "collapsed"], stdout=subprocess.PIPE, text=True,
                              check=True)
        for line in done.stdout.splitlines():
            frames, count = line.rsplit(" ", 1)
            yield [frame.split(" ")[0] for frame in frames.split(";")], int(count)

    flutter = script("flutter.py", FLUTTER)
    for name, more in (("inside", []), ("outside", ["--engine", "external"])):
        for depth in "1", "500":
            subprocess.run(profiled("--rate", "999", "--max-stack", "600",
                                    *more)
                           + [options.python, flutter, depth], check=True)
            leaves = wrong = good = 0
            for names, count in stacks():
                if names.count("down") == int(depth) and "<torn>" not in names:
                    good += count
                if len(names) > 1 and names[-1].startswith("leaf_"):
                    leaves += count
                    if names[-2] != "parent_" + names[-1][5:]:
                        wrong += count
            count = counters(program, log)
            print("alternating chains at depth %s, from %s: %d of %d stacks "
                  "impossible, %.2f %% of %d good; %s"
                  % (depth, name, wrong, leaves,
                     100 * good / count["samples"], count["samples"],
                     {key: count[key] for key in
                      ("lost", "torn", "unreadable", "unproven")}), flush=True)

    subprocess.run(profiled("--rate", "999")
                   + [options.python, script("split.py", SPLIT)], check=True)
    heavy = sum(count for names, count in stacks() if "heavy" in names)
    light = sum(count for names, count in stacks() if "light" in names)
    share = heavy / (heavy + light)
    sigma = math.sqrt(0.7 * 0.3 / (heavy + light))
    print("70/30 split: %.4f of %d samples, %.1f standard deviations off"
          % (share, heavy + light, abs(share - 0.7) / sigma))
    phases = cpu_of(profiled("--rate", "999")
                    + [options.python, script("phases.py", PHASES)])
    print("a phase's begin and end in Python: %.1f us" % (phases * 1e6))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
