#!/usr/bin/python3
"""Makes the checkpoints beside it after the public layout of what writes them, as
no job of several ranks and neither DeepSpeed nor llama.cpp was at hand.

    tests/data/sharded/make.py

fsdp/                   DTensors of four ranks, 2 replicas by 2 shards
zero2/, zero3/          DeepSpeed's ZeRO of two ranks, stages 2 and 3
universal/              the same parameters as a universal checkpoint
tiny.gguf               float and quantised tensors
"""

import os
import random
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import deepspeed_maker as deepspeed  # noqa: E402
import gguf_test as gguf  # noqa: E402
import torch_maker as torch  # noqa: E402


def fsdp():
    draw = random.Random(1)
    weight = [round(draw.uniform(-1, 1), 2) for _ in range(20)]
    for rank in range(4):
        shard = rank % 2
        rows = torch.tensor("float32", [3 - shard, 4],
                            weight[:12] if shard == 0 else weight[12:])
        torch.save(
            os.path.join(HERE, "fsdp", "model_world_size_4_rank_%d.pt" % rank),
            {"layers.0.weight": torch.dtensor(
                [5, 4], rows, torch.mesh([2, 2], rank),
                [torch.replicate(), torch.shard(0)]),
             "step": 100,
             "rng": torch.tensor("uint8", [4], [rank, 1, 2, 3])})


def zero():
    parameters = [("layers.0.weight", [5, 3], [i / 4 for i in range(15)]),
                  ("layers.0.bias", [3], [1.0, 2.0, 3.0])]
    for stage in (2, 3):
        deepspeed.write(os.path.join(HERE, "zero%d" % stage), stage,
                        [parameters], 2)
    deepspeed.write_universal(os.path.join(HERE, "universal"), parameters)


def tiny():
    draw = random.Random(2)
    pairs = [gguf.pair("general.architecture", 8, gguf.text("llama"))]
    with open(os.path.join(HERE, "tiny.gguf"), "wb") as file:
        file.write(gguf.gguf([
            ("token_embd.weight", [4, 3], gguf.F32,
             torch.struct.pack("<12f", *[i / 8 for i in range(12)])),
            ("output_norm.weight", [4], gguf.BF16,
             torch.struct.pack("<4H", *[0x3f80] * 4)),
            ("blk.0.ffn_up.weight", [2, 256], gguf.Q4_K, draw.randbytes(288)),
        ], pairs))


if __name__ == "__main__":
    fsdp()
    zero()
    tiny()
