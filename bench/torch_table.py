#!/usr/bin/python3
"""Prints how long torch and we take for the same checkpoint (needs torch).

    bench/torch_table.py build/release

A file of 10,000 tensors of 4 KiB, saved by torch, in the page cache. In rounds:
torch.load of it, torch's CheckpointReader of every tenth tensor by template,
and between them our commands from start to end, the fastest of five. torch and
Python have been started and have read the file once.
"""

import json
import logging
import os
import statistics
import sys
import tempfile
import time

try:
    import torch
except ModuleNotFoundError:
    print("torch is not installed; skipped")
    sys.exit(0)
from torch.distributed.checkpoint._experimental.checkpoint_reader import (
    CheckpointReader)
from torch.distributed.checkpoint._experimental.types import RankInfo

ROUNDS = 5


def timed(work):
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def run(command):
    """The fastest of five, in milliseconds."""
    def once():
        child = os.posix_spawn(
            command[0], command, os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            sys.exit("failed: " + " ".join(command))
    return min(timed(once) for _ in range(5))


def main():
    postflight = os.path.abspath(sys.argv[1] + "/postflight")
    # Otherwise it warns about missing keys in each round.
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/checkpoint_0.pt"
        torch.save({"layers.%d.weight" % i: torch.full((32, 32), float(i))
                    for i in range(10000)}, path)
        tenth = {"layers.%d.weight" % i: None for i in range(0, 10000, 10)}
        template = folder + "/template.json"
        with open(template, "w") as file:
            json.dump(tenth, file)
        reader = CheckpointReader(RankInfo(global_rank=0, global_world_size=1))
        theirs = {"torch.load": lambda: torch.load(path),
                  "CheckpointReader, a tenth":
                      lambda: reader.read(folder, dict(tenth))}
        ours = {"`ckpt ls`": [postflight, "ckpt", "ls", path],
                "`ckpt read` of a tenth, to a pipe":
                    [postflight, "ckpt", "read", path, "--template", template,
                     "--format", "safetensors", "-o", "-"]}
        pairs = {(us, them): [] for us in ours for them in theirs}
        for them in theirs:
            theirs[them]()
        for _ in range(ROUNDS):
            for them, work in theirs.items():
                slow = timed(work)
                for us, command in ours.items():
                    pairs[us, them].append((run(command), slow))
    print("| what | ms | against | ms | ratio |")
    print("|---|---|---|---|---|")
    for (us, them), times in pairs.items():
        ratios = sorted(slow / fast for fast, slow in times)
        print("| %s | %.1f | %s | %.0f | 1/%.0f (1/%.0f to 1/%.0f) |" % (
            us, statistics.median(fast for fast, _ in times), them,
            statistics.median(slow for _, slow in times),
            statistics.median(ratios), ratios[0], ratios[-1]))


if __name__ == "__main__":
    main()
