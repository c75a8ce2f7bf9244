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
import subprocess
import sys
import tempfile
import time
import zipfile


class Stand:
    """Takes any call and state, as cheaply as Python can."""

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
    """Time that the processor gave this process and its children."""
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


def main():
    build = sys.argv[1]
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "many.pt")
        subprocess.run([build + "/bench/make_checkpoint", path, "10000",
                        "1024"], check=True)
        with zipfile.ZipFile(path) as archive:
            data = archive.read("sample/data.pkl")
        python = 1e3 * best(5, lambda: Unpickler(io.BytesIO(data)).load(),
                             time.process_time)
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
    for what, figure, against in rows:
        if against == "ms":
            figure = float(figure)
            print("| %s | %.1f ms, 1/%.0f | CPython's unpickler, %.0f ms |"
                  % (what, figure, python / figure, python))
        else:
            print("| %s | %s | %s |" % (what, figure, against))
    print("| `ckpt ls` of 10000 tensors, start to end | %.1f ms (%.1f ms of "
          "it starting) | |" % (whole, nothing))


if __name__ == "__main__":
    main()
