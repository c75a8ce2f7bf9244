#!/usr/bin/python3
"""Prints the table of the Python package in docs/performance.md.

    bench/python_table.py build/release [megabytes]

What needs numpy or torch is left out where they are not installed. The clock is
CPU time where one thread works, and else the wall clock, best of several
rounds.
"""

import ctypes
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def best(runs, work, clock=time.process_time):
    least = 1e9
    for _ in range(runs):
        start = clock()
        work()
        least = min(least, clock() - start)
    return least


def row(what, ours, baseline, theirs, unit, scale, ratio):
    print(f"| {what} | {ours * scale:.3g} {unit} | {baseline} "
          f"{theirs * scale:.3g} {unit} | {ratio} |")


def imports(package):
    def work(code):
        # The interpreter itself and the modules that it has anyway.
        subprocess.run([sys.executable, "-c", code, package], check=True)
    path = "import sys, ctypes, json; sys.path[:0] = [sys.argv[1]]; "
    clock = time.perf_counter
    bare = best(10, lambda: work(path), clock)
    ours = best(10, lambda: work(path + "import postflight; postflight.load; "
                                 "postflight.diagnose"), clock)
    print(f"| import, with load and diagnose | {(ours - bare) * 1e3:.3g} ms | "
          "- | - |")


def phases(postflight):
    count = 100_000

    def ours():
        for _ in range(count):
            with postflight.phase("x"):
                pass

    def nothing():
        for _ in range(count):
            pass
    took = (best(5, ours) - best(5, nothing)) / count
    print(f"| phase, entered and left, nobody profiles | {took * 1e6:.3g} us | "
          "- | - |")


def small(postflight):
    path = ROOT / "tests/data/ckpt/many.pt"
    checkpoint = postflight.Checkpoint(path)
    index = checkpoint.find(checkpoint.path_of(
        next(n for n in range(1, 50) if checkpoint.node(n).kind == 5)))
    size = checkpoint.tensor(index).bytes
    buffer = (ctypes.c_char * size)()
    address = ctypes.addressof(buffer)
    raw = ctypes.c_void_p(address)
    from postflight._library import library
    lib, handle = library(), checkpoint._value
    number, flags, room = ctypes.c_uint32(index), ctypes.c_uint32(0), \
        ctypes.c_size_t(size)
    count = 5000

    def direct():
        for _ in range(count):
            lib.postflight_tensor_read(handle, number, flags, raw, room, None)

    def python():
        for _ in range(count):
            checkpoint.read(index, "bytes")
    theirs, ours = best(5, direct) / count, best(5, python) / count
    row("one tensor of an open checkpoint", ours, "the C function", theirs, "us",
        1e6, f"+{(ours - theirs) * 1e6:.3g} us")


def large(postflight, megabytes, folder):
    if importlib_missing("torch"):
        print("torch is not installed: loading of large files is left out")
        return
    import torch
    path = os.path.join(folder, "large.pt")
    each = 64 << 20
    torch.save({f"w{i}": torch.rand(each // 4)
                for i in range(max(1, (megabytes << 20) // each))}, path)
    size = os.path.getsize(path)
    clock = time.perf_counter

    def plain():
        with open(path, "rb", buffering=0) as file:
            for _ in range(size // each):
                file.readinto(bytearray(each))
    plain()
    baseline = best(3, plain, clock)
    gigabytes = size / 1e9
    for what, work in (
            ("load", lambda: postflight.load(path)),
            ("load, CRCs checked",
             lambda: postflight.load(path, check_crc=True)),
            ("load, mmap=True", lambda: postflight.load(path, mmap=True)),
            ("torch.load", lambda: torch.load(path))):
        took = best(3, work, clock)
        print(f"| {what} of {gigabytes:.2f} GB | {gigabytes / took:.3g} GB/s | "
              f"read into fresh buffers {gigabytes / baseline:.3g} GB/s | "
              f"{baseline / took:.2f} |")


def importlib_missing(name):
    import importlib.util
    return importlib.util.find_spec(name) is None


def dumps(postflight):
    folder = ROOT / "tests/data/flight/nccl_long_run"
    files = [path for path in folder.iterdir() if path.suffix != ".json"
             and path.is_file()]

    def theirs():
        found = []
        for path in files:
            with open(path, "rb") as file:
                found.append(pickle.load(file))
        return found
    baseline = best(20, theirs)
    ours = best(20, lambda: postflight.read_dir(folder))
    columns = best(20, lambda: postflight.entries(folder / "nccl_trace_rank_*"))
    row("read_dir", ours, "pickle.load", baseline, "ms", 1e3,
        f"{ours / baseline:.2f} times")
    row("entries", columns, "pickle.load", baseline, "ms", 1e3,
        f"{baseline / columns:.1f} times faster")


def main(build, megabytes):
    package = str(ROOT / "python")
    sys.path.insert(0, package)
    os.environ["POSTFLIGHT_LIBRARY"] = str(
        (build / "libpostflight.so.0").resolve())
    import postflight
    print("| what | ours | baseline | ratio |\n|---|---|---|---|")
    imports(package)
    phases(postflight)
    small(postflight)
    dumps(postflight)
    with tempfile.TemporaryDirectory() as folder:
        large(postflight, megabytes, folder)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]),
         int(sys.argv[2]) if len(sys.argv) > 2 else 1024)
