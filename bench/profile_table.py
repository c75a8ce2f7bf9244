#!/usr/bin/python3
"""Measures what profiling costs the profiled program, and how true it is.

    bench/profile_table.py [--pairs 15] [--program build/release/postflight]

Each cost is a ratio of CPU times of the same work in the same run: pairs of a
profiled and a plain run, in turns, with a 95 % confidence interval of the mean
of the pairs' ratios (Student's t). The program measures itself, so what the
profiler uses beside it does not count; on a machine with other work to do, the
interval is wide and says so. perf (linux-perf) is measured beside us.
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
T95 = {5: 2.776, 8: 2.365, 10: 2.262, 15: 2.145, 20: 2.093, 30: 2.045}

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

FLUTTER = """
import time
def leaf_a(): pass
def leaf_b(): pass
def parent_a():
    leaf_a(); leaf_a(); leaf_a()
def parent_b():
    leaf_b(); leaf_b(); leaf_b()
end = time.time() + 10
while time.time() < end:
    for _ in range(1000):
        parent_a()
        parent_b()
"""


def cpu_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True)
    line = next(line for line in done.stdout.splitlines()
                if line.startswith("cpu "))
    return float(line.split()[1])


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
    work = os.path.join(folder, "work.py")
    with open(work, "w", encoding="utf-8") as file:
        file.write(WORK.replace("COUNT", "300_000"))

    def profiled(*arguments):
        return [program, "profile", "-q", "-o", log, *arguments, "--"]

    rows = [
        ("99 Hz", profiled("--rate", "99"), ("20", "0")),
        ("999 Hz", profiled("--rate", "999"), ("20", "0")),
        ("999 Hz, 160 threads", profiled("--rate", "999"), ("20", "160")),
        ("999 Hz, 60 frames", profiled("--rate", "999"), ("60", "0")),
        ("999 Hz, 470 frames", profiled("--rate", "999"), ("468", "0")),
        ("999 Hz, from outside",
         profiled("--rate", "999", "--engine", "external"), ("20", "0")),
    ]
    if shutil.which("perf"):
        rows.append(("perf record -F 999 -g",
                     ["perf", "record", "-q", "-F", "999", "-g", "-o",
                      os.path.join(folder, "perf.data"), "--"], ("20", "0")))
    print("%-24s %16s %10s %8s %14s" % ("", "CPU ratio", "samples", "lost",
                                        "us in handler"))
    for name, prefix, arguments in rows:
        plain = [options.python, work, *arguments]
        ratios = [cpu_of(prefix + plain) / cpu_of(plain)
                  for _ in range(options.pairs)]
        mean, half = interval(ratios)
        row = "%-24s %8.3f ± %.3f" % (name, mean, half)
        if prefix[0] == program:
            count = counters(program, log)
            handled = count.get("handled", 0)
            row += " %10d %8d" % (count["samples"], count["lost"])
            if handled:
                row += " %14.2f" % (count["handler_ns"] / handled / 1000)
        print(row, flush=True)

    flutter = os.path.join(folder, "flutter.py")
    with open(flutter, "w", encoding="utf-8") as file:
        file.write(FLUTTER)
    for name, more in (("inside", []), ("outside", ["--engine", "external"])):
        subprocess.run(profiled("--rate", "999", *more)
                       + [options.python, flutter], check=True)
        done = subprocess.run([program, "profile", "report", log, "--to",
                               "collapsed"], stdout=subprocess.PIPE, text=True,
                              check=True)
        leaves = wrong = 0
        for line in done.stdout.splitlines():
            frames, count = line.rsplit(" ", 1)
            names = [frame.split(" ")[0] for frame in frames.split(";")]
            if len(names) > 1 and names[-1].startswith("leaf_"):
                leaves += int(count)
                if names[-2] != "parent_" + names[-1][5:]:
                    wrong += int(count)
        print("alternating chains, from %s: %d of %d stacks impossible; %s"
              % (name, wrong, leaves, counters(program, log)))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
