#!/usr/bin/python3
"""Prints the table of distributed checkpoints of docs/performance.md.

    bench/dcp_table.py build/release
"""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "tests"))

import dcp_maker  # noqa: E402  of the tests

BUILD = sys.argv[1]
CHUNKS = 8
TENSORS = 8


def measured(*arguments):
    printed = subprocess.run(
        [os.path.join(BUILD, "bench", "dcp_bench"), *arguments], check=True,
        stdout=subprocess.PIPE, text=True).stdout
    return [float(number) for number in printed.split()]


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def open_row(folder, tensors, chunks):
    """The files of the items exist, but are sparse."""
    length = 2098176
    described = [(f"model.layers.{i // 20}.block{i % 20}.weight",
                  [512 * chunks, 1024],
                  [dcp_maker.Chunk([512 * c, 0], [512, 1024],
                                   f"__{c}_0.distcp", i * length, length)
                   for c in range(chunks)])
                 for i in range(tensors)]
    data = dcp_maker.metadata(described)
    write(os.path.join(folder, ".metadata"), data)
    for c in range(chunks):
        with open(os.path.join(folder, f"__{c}_0.distcp"), "wb") as file:
            file.truncate(tensors * length)
    del described
    gc.disable()
    theirs = float("inf")
    for _ in range(5):
        start = time.process_time()
        loaded = pickle.loads(data)
        theirs = min(theirs, time.process_time() - start)
        del loaded
    ours, = measured("open", folder)
    row(f"open {tensors * chunks:,} chunks of {tensors:,} tensors "
        f"({len(data) / 1e6:.0f} MB)",
        f"{ours * 1e3:.0f} ms, 1/{theirs / ours:.1f}",
        "CPython's `pickle.load` with stub classes, "
        f"{theirs * 1e3:.0f} ms")


def checkpoint(folder, rows, columns, by_row, wrap=None):
    """Tensors of float32 in chunks of rows by columns, side by side."""
    item = dcp_maker.item([rows, columns], os.urandom(4 * rows * columns)
                          if wrap is None else weights(rows * columns))
    if wrap is not None:
        item = wrap(item)
    size = [rows * CHUNKS, columns] if by_row else [rows, columns * CHUNKS]
    described = []
    for i in range(TENSORS):
        described.append((f"t{i}", size, [
            dcp_maker.Chunk([rows * c, 0] if by_row else [0, columns * c],
                            [rows, columns], f"__{c}_0.distcp",
                            i * len(item), len(item),
                            ["stream.zstd/1"] if wrap else None)
            for c in range(CHUNKS)]))
    for c in range(CHUNKS):
        write(os.path.join(folder, f"__{c}_0.distcp"), item * TENSORS)
    write(os.path.join(folder, ".metadata"), dcp_maker.metadata(described))


def weights(count):
    """Numbers whose upper halves are similar, as those of weights are."""
    noise = os.urandom(count * 2)
    data = bytearray(4 * count)
    data[0::4] = noise[:count]
    data[1::4] = noise[count:]
    data[2::4] = bytes(b & 0x7f for b in noise[:count])
    data[3::4] = bytes(0x3c | b & 1 for b in noise[count:])
    return bytes(data)


def compress(data):
    return subprocess.run([os.path.join(BUILD, "postflight"), "stream",
                           "encode", "--quiet", "--with", "stream.zstd/1"],
                          check=True, input=data,
                          stdout=subprocess.PIPE).stdout


def whole_row(how, *shape):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(folder, *shape)
        ours, theirs = measured("read", folder)
        row(f"read {TENSORS} tensors of {CHUNKS} x 4 MiB, {how}",
            f"{theirs / ours:.2f}", "pread of the same bytes")
        return measured("slice", folder, "[100:200]")[0]


def main():
    row("what", "measured", "against")
    row("---", "---", "---")
    for tensors, chunks in ((100_000 // CHUNKS, CHUNKS), (100_000, 1)):
        with tempfile.TemporaryDirectory() as folder:
            open_row(folder, tensors, chunks)
    by_row = whole_row("chunks of rows", 256, 4096, True)
    by_column = whole_row("chunks of columns", 1024, 1024, False)
    row("bytes read for 100 rows, chunks of rows", f"{by_row:.3f}",
        "the bytes of the slice")
    row("the same, chunks of columns", f"{by_column:.3f}",
        "the bytes of the slice")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint(folder, 256, 4096, True, compress)
        one, all_of_them = measured("threads", folder)
        row(f"items through zstd, {os.cpu_count()} threads",
            f"{one / all_of_them:.2f}", "one thread, by the clock")
        peak, size = measured("peak", folder)
        row(f"memory to read a tensor of {size:.0f} MiB of such a checkpoint",
            f"{peak:.0f} MiB", "")


if __name__ == "__main__":
    main()
