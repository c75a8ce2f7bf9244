#!/usr/bin/python3
"""Prints the table of what converting, comparing and checking checkpoints costs.

    bench/convert_table.py build/release [FOLDER] [MIB]

Each row is a ratio of two things that were measured by turns in this run, the
median of several rounds: how fast the program is compared with reading, writing
and syncing the same bytes in one thread (`floor`), or with reading them. Memory is the peak of
the whole process. FOLDER should be on the disk that is meant.
"""

import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
PIECE = 8 << 20


def make(path, mebibytes):
    """A safetensors file of float32 tensors with ordinary numbers."""
    count, size = max(1, mebibytes // 16), 16 << 20
    header = {"layers.%03d.weight" % i: {
        "dtype": "F32", "shape": [2048, size // 8192],
        "data_offsets": [i * size, (i + 1) * size]} for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = b"".join(struct.pack("<I", 0x3f000000 | (i * 2654435761 & 0x7fffff))
                     for i in range(size // 64 // 4))
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(count):
            for j in range(64):
                file.write(block[4 * (i + j):] + block[:4 * (i + j)])
    return count * size


def files_of(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path))]


def read(path):
    for name in files_of(path):
        with open(name, "rb", buffering=0) as file:
            room = bytearray(PIECE)
            while file.readinto(room):
                pass


def copy(path, target):
    with open(target, "wb", buffering=0) as out:
        for name in files_of(path):
            with open(name, "rb", buffering=0) as file:
                room = memoryview(bytearray(PIECE))
                while size := file.readinto(room):
                    out.write(room[:size])
        os.fsync(out.fileno())


def sweep(path):
    """A memory sweep: every byte of the file is loaded and summed by C code."""
    import zlib
    for name in files_of(path):
        with open(name, "rb", buffering=0) as file:
            room = bytearray(PIECE)
            while size := file.readinto(room):
                zlib.adler32(memoryview(room)[:size])


def timed(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def main():
    build = sys.argv[1]
    where = sys.argv[2] if len(sys.argv) > 2 else None
    mebibytes = int(sys.argv[3]) if len(sys.argv) > 3 else 512
    program = os.path.join(build, "postflight")
    peak = 0

    def ckpt(*arguments, ok=(0,)):
        nonlocal peak
        child = subprocess.Popen([program, "ckpt", *arguments],
                                 stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode in ok, (arguments, child.returncode)
        peak = max(peak, usage.ru_maxrss)

    rows = []
    with tempfile.TemporaryDirectory(dir=where) as folder:
        def path(name):
            return os.path.join(folder, name)

        def row(what, ours, floor, must, cleaned=()):
            nonlocal peak
            peak = 0
            ratios = []
            for _ in range(ROUNDS):
                for name in cleaned:
                    remove(path(name))
                theirs = timed(floor)
                for name in cleaned:
                    remove(path(name))
                mine = timed(ours)
                ratios.append(theirs / mine)
            ratios.sort()
            rows.append((what, "%.2f (%.2f to %.2f)" % (
                statistics.median(ratios), ratios[0], ratios[-1]), must,
                "%d MiB" % (peak >> 10)))

        start = path("start.safetensors")
        size = make(start, mebibytes)
        ckpt("convert", start, path("dcp"), "--to", "dcp", "--no-verify")
        ckpt("convert", start, path("m.pt"), "--no-verify")
        read(path("dcp"))
        row("convert DCP to safetensors, `--no-verify`",
            lambda: ckpt("convert", path("dcp"), path("out.safetensors"),
                         "--no-verify"),
            lambda: copy(path("dcp"), path("out.safetensors")),
            "0.7 of read, write and sync", ["out.safetensors"])
        row("the same, read back and compared",
            lambda: ckpt("convert", path("dcp"), path("out.safetensors")),
            lambda: copy(path("dcp"), path("out.safetensors")),
            "0.45 of read, write and sync", ["out.safetensors"])
        row("reshard to 8 ranks, `--no-verify`",
            lambda: ckpt("reshard", path("dcp"), path("eight"), "--ranks", "8",
                         "--no-verify"),
            lambda: copy(path("dcp"), path("out.safetensors")),
            "", ["out.safetensors", "eight"])
        remove(path("eight"))
        remove(path("out.safetensors"))
        row("stats", lambda: ckpt("stats", start), lambda: sweep(start),
            "0.7 of a sweep over the bytes")
        shutil.copy(start, path("same.safetensors"))
        row("diff of two equal files",
            lambda: ckpt("diff", start, path("same.safetensors")),
            lambda: (read(start), read(path("same.safetensors"))),
            "0.6 of reading both")
        remove(path("same.safetensors"))
        row("read with CRC against `--no-crc`",
            lambda: ckpt("read", path("m.pt"), "-o", path("r.safetensors")),
            lambda: ckpt("read", path("m.pt"), "-o", path("r.safetensors"),
                         "--no-crc"),
            "0.9", ["r.safetensors"])
        row("digest", lambda: ckpt("digest", start), lambda: read(start), "")
        remove(path("r.safetensors"))
        small = path("small")
        os.mkdir(small)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "../tests/data/ckpt/train_state.pt")
        for i in range(1000):
            shutil.copy(source, os.path.join(small, "%d.pt" % i))
        scans = sorted(timed(lambda: ckpt("scan", small)) for _ in range(5))
        rows.append(("scan of 1,000 files", "%.3f s" % scans[2], "0.1 s", ""))
    print("%d MiB of tensors, %d processors" % (size >> 20, os.cpu_count()))
    print("| what | measured | must | peak memory |")
    print("|---|---|---|---|")
    for line in rows:
        print("| %s |" % " | ".join(line))


if __name__ == "__main__":
    main()
