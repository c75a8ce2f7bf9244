"""Checkpoints of DeepSpeed's ZeRO 1 to 3 and universal ones give the parameters
and moments that they were made from.

usage: deepspeed_test.py PROGRAM
"""

import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import deepspeed_maker as deepspeed  # noqa: E402  beside this file


def run(program, *arguments, expect=0):
    done = subprocess.run([program, "ckpt", *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == expect, (arguments, done.returncode, done.stdout,
                                       done.stderr)
    return " ".join(done.stdout.decode().split())  # lines are wrapped


def tensors(program, path, expect=0):
    answer = json.loads(run(program, "digest", "--json", path, expect=expect))
    return {tensor["key"]: (tensor["shape"], tensor["sha256"])
            for tensor in answer["tensors"]}


def digest(values):
    return hashlib.sha256(struct.pack("<%df" % len(values), *values)).hexdigest()


def random_groups(draw):
    groups = []
    for g in range(draw.randrange(1, 4)):
        group = []
        for i in range(draw.randrange(1, 6)):
            shape = [draw.choice((1, 2, 3, 5, 8))
                     for _ in range(draw.randrange(4))]
            values = [float(draw.randrange(1000))
                      for _ in range(deepspeed.elements(shape))]
            group.append(("layers.%d.%d.weight" % (g, i), shape, values))
        groups.append(group)
    return groups


def wanted_of(groups):
    wanted = {}
    for group in groups:
        for name, shape, values in group:
            for place, factor in (("model.", 1), ("optimizer.exp_avg.", 2),
                                  ("optimizer.exp_avg_sq.", 4)):
                wanted[place + name] = (shape, digest([v * factor
                                                       for v in values]))
    return wanted


def round_trips(program, folder):
    draw = random.Random(20)
    for case in range(40):
        stage = draw.choice((1, 2, 3))
        ranks = draw.choice((1, 2, 3, 4, 8))
        groups = random_groups(draw)
        where = os.path.join(folder, "global_step100")
        lean = stage < 3 and draw.random() < 0.5
        count = sum(len(group) for group in groups)
        deepspeed.write(
            where, stage, groups, ranks, lean=lean,
            elastic=stage < 3 and draw.random() < 0.5,
            prefix="bf16_" if stage < 3 and draw.random() < 0.3 else "",
            sub_groups=draw.choice((1, min(2, count))) if stage == 3 else 1)
        found = tensors(program, where)
        wanted = wanted_of(groups)
        wanted["model.norm.running_mean"] = ([2], digest([0.25, 0.5]))
        assert found == wanted, (case, stage, ranks, lean,
                                 {k for k in wanted if wanted[k] !=
                                  found.get(k)}, set(found) - set(wanted))
        run(program, "verify", where)
        made = os.path.join(folder, "weights.safetensors")
        run(program, "convert", where, made, "--keys", "model.*", "--rename",
            "^model\\.=", "--drop-values")
        names = {"model." + key: value
                 for key, value in tensors(program, made).items()}
        assert names == {key: value for key, value in wanted.items()
                         if key.startswith("model.")}
        os.remove(made)
        shutil.rmtree(where)


def others(program, folder):
    """Frozen and shared parameters, the values of the model's file."""
    groups = [[("a", [3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ("b", [], [7.0])]]
    frozen = [("f", [5], [1.5, 2.5, 3.5, 4.5, 5.5])]
    for stage in (2, 3):
        where = os.path.join(folder, "others%d" % stage)
        deepspeed.write(where, stage, groups, 2, frozen=frozen,
                        shared_params={"tied": "a"}, my_state={"epoch": 3})
        found = tensors(program, where)
        assert found["model.f"] == ([5], digest(frozen[0][2])), found
        assert found["model.tied"] == found["model.a"]
        text = run(program, "ls", "--all", where)
        assert "my_state.epoch" in text and "global_steps" in text, text
        assert "deepspeed" in run(program, "ls", "--json", where)


def refusals(program, folder):
    """What does not fit together is not put together."""
    groups = [[("a", [3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]]
    where = os.path.join(folder, "missing")
    deepspeed.write(where, 2, groups, 4)
    os.remove(os.path.join(where,
                           "zero_pp_rank_2_mp_rank_00_optim_states.pt"))
    text = run(program, "ls", where, expect=1)
    assert "rank 2 are missing" in text and "model.a" not in text, text
    where = os.path.join(folder, "last")
    deepspeed.write(where, 2, groups, 4)
    os.remove(os.path.join(where,
                           "zero_pp_rank_3_mp_rank_00_optim_states.pt"))
    text = run(program, "ls", where, expect=1)
    assert "those of 4 ranks, but 3" in text, text
    where = os.path.join(folder, "short")
    deepspeed.write(where, 2, groups, 1)
    deepspeed.write(where + "x", 2,
                    [[("a", [300, 2], [1.0] * 600)]], 1)
    shutil.copy(os.path.join(where + "x", "mp_rank_00_model_states.pt"), where)
    text = run(program, "ls", where, expect=1)
    assert "parameters need 600" in text, text
    where = os.path.join(folder, "nameless")
    deepspeed.write(where, 1, groups, 2)
    os.remove(os.path.join(where, "mp_rank_00_model_states.pt"))
    assert "no model_states" in run(program, "ls", where, expect=1)
    # A truncated partition costs the parameters that are in it.
    where = os.path.join(folder, "cut")
    deepspeed.write(where, 2, [[("a", [4], [1.0] * 4), ("b", [4], [2.0] * 4)]],
                    2)
    path = os.path.join(where, "zero_pp_rank_1_mp_rank_00_optim_states.pt")
    with open(path, "rb") as file:
        contents = file.read()
    with open(path, "wb") as file:
        file.write(contents[:len(contents) // 2])
    run(program, "ls", where, expect=1)


def universal(program, folder):
    where = os.path.join(folder, "global_step100_universal")
    parameters = [("a.weight", [3, 2], [float(i) for i in range(6)]),
                  ("b", [], [7.0])]
    deepspeed.write_universal(where, parameters)
    assert tensors(program, where) == wanted_of([parameters])
    os.remove(os.path.join(where, "zero", "b", "fp32.pt"))
    text = run(program, "ls", where, expect=1)
    assert "it has no fp32.pt" in text, text


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        round_trips(program, folder)
        others(program, folder)
        refusals(program, folder)
        universal(program, folder)


if __name__ == "__main__":
    main()
