#!/usr/bin/python3
"""Prints the checkpoint table of docs/performance.md.

    bench/checkpoint_table.py build/release

Opening is compared with CPython's own unpickler in C over the same data.pkl,
with stand-ins for torch's classes.
"""

import gc
import io
import os
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile


class Stand:
    """Accepts any call and state, as cheaply as possible in Python."""

    def __init__(self, *arguments):
        pass

    def __setitem__(self, key, value):
        pass


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        return dict if name == "OrderedDict" else Stand

    def persistent_load(self, key):
        return key


def spent():
    """CPU time of this process and its children."""
    own, children = (resource.getrusage(who) for who in (
        resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def best(runs, work, clock=spent):
    least = 1e9
    for _ in range(runs):
        start = clock()
        work()
        least = min(least, clock() - start)
    return least


def open_by_turns(build, path, data):
    """Milliseconds of CPython's reading and of our opening, per round.

    A machine that others use is faster now and slower then; what is measured
    within a tenth of a second is measured alike.
    """
    rounds = []
    with subprocess.Popen([build + "/bench/checkpoint_bench", path], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ours:
        def opened():
            ours.stdin.write("\n")
            ours.stdin.flush()
            return float(ours.stdout.readline())
        for _ in range(20):
            python = min(1e3 * best(1, lambda: Unpickler(
                io.BytesIO(data)).load(), time.process_time)
                for _ in range(3))
            rounds.append((python, min(opened() for _ in range(5))))
        ours.stdin.close()
    return rounds


def main():
    build = sys.argv[1]
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "many.pt")
        subprocess.run([build + "/bench/make_checkpoint", path, "10000",
                        "1024"], check=True)
        with zipfile.ZipFile(path) as archive:
            data = archive.read("sample/data.pkl")
        rounds = open_by_turns(build, path, data)
        command = [build + "/postflight", "ckpt", "ls", path]
        whole = 1e3 * best(10, lambda: subprocess.run(
            command, stdout=subprocess.DEVNULL, check=True))
        nothing = 1e3 * best(10, lambda: subprocess.run(
            [build + "/postflight", "version"], stdout=subprocess.DEVNULL,
            check=True))
    rows = [line.split("\t") for line in subprocess.run(
        [build + "/bench/checkpoint_bench"], stdout=subprocess.PIPE,
        check=True, text=True).stdout.splitlines()]
    print("| what | measured | against |")
    print("|---|---|---|")
    ratios = sorted(python / ours for python, ours in rounds)
    python, ours = (statistics.median(times) for times in zip(*rounds))
    print("| open 10000 tensors | %.1f ms, 1/%.1f (1/%.1f to 1/%.1f) | "
          "CPython's unpickler, %.0f ms |" % (
              ours, statistics.median(ratios), ratios[0], ratios[-1], python))
    for what, figure, against in rows:
        print("| %s | %s | %s |" % (what, figure, against))
    print("| `ckpt ls` of 10000 tensors, start to end | %.1f ms (%.1f ms of "
          "it starting) | |" % (whole, nothing))


if __name__ == "__main__":
    main()
