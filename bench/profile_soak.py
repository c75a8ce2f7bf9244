#!/usr/bin/python3
"""Soak test: samples programs that are hard to sample, for a long time.

    bench/profile_soak.py [--seconds 60] [--rate 9999] [--jobs 1] [PYTHON...]

Threads start and die, processes fork and call exec, code is made and dropped,
generators call each other, descriptors are closed and used again, signals are
blocked, faulthandler is on. Each Python (Debian's unless others are given)
runs so long from inside, by the clock thread and from outside, --jobs of these at
a time. A program that does not end well, or a stack that cannot be, fails.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

from profile_table import CHAINS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

PROGRAM = CHAINS + """
import faulthandler, os, signal, subprocess, sys, threading, time
faulthandler.enable()
end = time.time() + float(sys.argv[1])

def chain(n):
    if n:
        yield from chain(n - 1)
    else:
        for _ in range(200):
            parent_a()
            yield
            parent_b()

def work():
    for _ in range(20):
        for _ in chain(10):
            pass
        space = {}
        exec(compile("def made(x): return x + 1", "<made>", "exec"), space)
        for i in range(100):
            space["made"](i)

def blocked():
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, every)
    work()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)

def reopened():
    os.closerange(3, 64)
    files = [os.open("/dev/null", os.O_WRONLY) for _ in range(20)]
    work()
    for file in files:
        assert os.fstat(file).st_rdev == os.stat("/dev/null").st_rdev
        os.close(file)

rounds = 0
while time.time() < end:
    threads = [threading.Thread(target=work) for _ in range(3)]
    child = os.fork()
    if child == 0:
        work()
        os._exit(7)
    for thread in threads:
        thread.start()
    work()
    blocked()
    reopened()
    done = subprocess.run([sys.executable, "-c",
                           "for i in range(200_000): pass\\nraise SystemExit(5)"])
    assert done.returncode == 5, done
    for thread in threads:
        thread.join()
    status = os.waitpid(child, 0)[1]
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7, status
    rounds += 1
print("rounds", rounds)
"""


def report(program, log, *more):
    return subprocess.run([program, "profile", "report", log, *more],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


ENGINES = (("inside", [], {}), ("clock", [], {"POSTFLIGHT_NO_PERF": "1"}),
           ("outside", ["--engine", "external"], {}))


def soak(options, script, python, engine):
    """Whether it failed, and its samples."""
    name, arguments, added = engine
    log = tempfile.mktemp(dir=os.path.dirname(script))
    done = subprocess.run(
        [options.program, "profile", "-q", "--rate", options.rate, "-o", log,
         *arguments, "--", python, "-W", "ignore", script,
         str(options.seconds)],
        env={**os.environ, **added}, stdout=subprocess.PIPE, text=True,
        check=False)
    answer = json.loads(report(options.program, log, "--json"))
    count = {one["name"]: int(one["count"]) for one in answer["counters"]}
    leaves = wrong = 0
    for line in report(options.program, log, "--to", "collapsed").splitlines():
        frames, number = line.rsplit(" ", 1)
        names = [frame.split(" ")[0] for frame in frames.split(";")]
        if len(names) > 1 and names[-1].startswith("leaf_"):
            leaves += int(number)
            if names[-2] != "parent_" + names[-1][5:]:
                wrong += int(number)
    bad = done.returncode != 0 or wrong * 1000 > leaves
    print("%-8s %-8s %s  exit %d, %s, %d of %d stacks impossible; %s"
          % ("FAILED" if bad else "ok", name, python, done.returncode,
             done.stdout.strip(), wrong, leaves,
             ", ".join("%s %d" % (key, count[key]) for key in
                       ("samples", "lost", "torn", "unreadable",
                        "unproven"))), flush=True)
    os.remove(log)
    return bad, count["samples"], wrong, leaves


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", default="9999")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--program",
                        default=os.path.join(ROOT, "build/release/postflight"))
    parser.add_argument("pythons", nargs="*", default=["/usr/bin/python3"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        script = os.path.join(folder, "soak.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        runs = [pool.submit(soak, options, script, python, engine)
                for python in options.pythons for engine in ENGINES]
        failed, samples, wrong, leaves = (
            sum(column) for column in zip(*(run.result() for run in runs)))
    print("%d samples, %d of %d runs failed, %d of %d stacks impossible"
          % (samples, failed, len(runs), wrong, leaves))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
