#!/usr/bin/python3
"""Measures the overhead of profiling and the accuracy of its samples.

    bench/profile_table.py [--pairs 300] [--program build/release/postflight]

Each cost is a ratio of CPU times of the same work, done by one process in turns
with the sampling on and off: the median of the pairs' ratios, with the 95 %
confidence interval that their order gives, whatever their distribution. Two
processes that do the same differ by some 10 %, and the machine's speed changes
from second to second; blocks of a tenth of a second of one process share both.
The program measures itself, so what the profiler uses beside it does not count.
perf (linux-perf) is measured beside us.
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

# Runs pairs of blocks and prints the CPU time of each: sampled, not sampled.
# Sampling is switched at its source: the perf events of the process itself, the
# reader outside (by stopping it), or perf, through its control channel.
WORK = """
import fcntl, os, signal, sys, threading, time
switch, kind, pairs, depth, threads = (
    sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
sys.setrecursionlimit(10000)

def spin(n):
    x = 0
    for i in range(n):
        x += i * i & 7
    return x

def down(n):
    return down(n - 1) if n > 1 else spin(COUNT)

def stream(n):
    yield from (stream(n - 1) if n > 1 else [spin(COUNT)])

def block():
    for _ in range(5):
        down(depth) if kind != "generators" else list(stream(depth))

def turn_events(on):
    for name in os.listdir("/proc/self/fd"):
        try:
            if "perf_event" in os.readlink("/proc/self/fd/" + name):
                fcntl.ioctl(int(name), 0x2400 if on else 0x2401, 0)
        except OSError:
            pass

def turn_reader(on):
    os.kill(os.getppid(), signal.SIGCONT if on else signal.SIGSTOP)

def turn_perf(on):
    with open(os.environ["PERF_CONTROL"], "w") as control:
        control.write("enable\\n" if on else "disable\\n")
    with open(os.environ["PERF_ANSWER"]) as answer:
        answer.readline()

turn = {"events": turn_events, "reader": turn_reader, "perf": turn_perf}[switch]

def idle():
    threading.Event().wait()

# Busy threads share the work of each block.
if kind == "busy":
    start = threading.Barrier(threads + 1)
    end = threading.Barrier(threads + 1)
    def worker():
        while True:
            start.wait()
            spin(COUNT * 5 // threads)
            end.wait()
    for _ in range(threads):
        threading.Thread(target=worker, daemon=True).start()
    def block():
        start.wait()
        end.wait()
else:
    for _ in range(threads):
        threading.Thread(target=idle, daemon=True).start()

def timed(on):
    turn(on)
    start = time.process_time()
    block()
    return time.process_time() - start

timed(True), timed(False)
for i in range(pairs):
    if i % 2:
        off = timed(False)
        on = timed(True)
    else:
        on = timed(True)
        off = timed(False)
    print("pair", on, off)
turn(True)
"""

# Two call chains: a leaf below the other chain's parent is impossible.
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


def pairs_of(command, environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True,
                          env=environment)
    return [tuple(map(float, line.split()[1:]))
            for line in done.stdout.splitlines() if line.startswith("pair ")]


def median_interval(ratios):
    """The median and its 95 % confidence interval, by order statistics."""
    ordered = sorted(ratios)
    count = len(ordered)
    spread = 1.96 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - spread))
    high = min(count - 1, math.ceil(count / 2 + spread))
    return statistics.median(ordered), ordered[low], ordered[high]


def counters(program, log):
    done = subprocess.run([program, "profile", "report", "--json", log],
                          stdout=subprocess.PIPE, check=True)
    answer = json.loads(done.stdout)
    return {one["name"]: int(one["count"]) for one in answer["counters"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=300)
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

    def profiled(*arguments):
        return [program, "profile", "-q", "--force", "-o", log, *arguments, "--"]

    inside = profiled("--rate", "999")
    rows = [
        ("99 Hz", profiled("--rate", "99"), "events", "plain", 20, 0),
        ("999 Hz", inside, "events", "plain", 20, 0),
        ("999 Hz, 160 idle threads", inside, "events", "plain", 20, 160),
        ("999 Hz, 160 busy threads", inside, "events", "busy", 20, 160),
        ("999 Hz, 60 frames", inside, "events", "plain", 58, 0),
        ("999 Hz, 470 frames", inside, "events", "plain", 468, 0),
        ("999 Hz, 60 generators", inside, "events", "generators", 58, 0),
        ("999 Hz, from outside",
         profiled("--rate", "999", "--engine", "external"), "reader", "plain",
         20, 0),
    ]
    environment = dict(os.environ)
    if shutil.which("perf"):
        for name in "PERF_CONTROL", "PERF_ANSWER":
            environment[name] = os.path.join(folder, name)
            os.mkfifo(environment[name])
        rows.append(("perf record -F 999 -g",
                     ["perf", "record", "-q", "-F", "999", "-g", "-o",
                      os.path.join(folder, "perf.data"), "--control",
                      "fifo:%(PERF_CONTROL)s,%(PERF_ANSWER)s" % environment,
                      "--"], "perf", "plain", 20, 0))
    print("%-26s %7s %17s %8s %9s %5s %11s %12s"
          % ("", "ratio", "95 %", "of sums", "samples", "lost", "us/sample",
             "us handler*"))
    for name, prefix, *arguments in rows:
        arguments.insert(2, options.pairs)
        pairs = pairs_of(prefix + [options.python, work, *map(str, arguments)],
                         environment)
        median, low, high = median_interval([on / off for on, off in pairs])
        on, off = (sum(times) for times in zip(*pairs))
        row = "%-26s %7.4f %8.4f–%.4f %8.4f" % (name, median, low, high,
                                                on / off)
        if prefix[0] == program:
            count = counters(program, log)
            # A reader that is stopped half of the time misses those samples.
            lost = "" if arguments[0] == "reader" else str(count["lost"])
            row += " %9d %5s %11.1f" % (
                count["samples"], lost,
                1e6 * (median - 1) * off / max(1, count["samples"]))
            if "handler_median_ns" in count:
                row += " %12.2f" % (count["handler_median_ns"] / 1000)
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
