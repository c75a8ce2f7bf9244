"""Folders with a file of each rank become one tree.

Random tensors are laid out over random meshes by lists of indices, the simplest
way there is, and saved by every rank as torch would; `ckpt` must join them to
the tensor that they were made from, whatever the placements, and must not join
what does not belong together.

usage: rank_folders_test.py PROGRAM
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
import torch_maker as torch  # noqa: E402  beside this file


def run(program, *arguments, expect=0):
    done = subprocess.run([program, "ckpt", *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == expect, (arguments, done.returncode, done.stdout,
                                       done.stderr)
    return " ".join(done.stdout.decode().split())  # lines are wrapped


def digests(program, path, *options, expect=0):
    answer = json.loads(run(program, "digest", "--json", path, *options,
                            expect=expect))
    return {tensor["key"]: tensor["sha256"] for tensor in answer["tensors"]
            if tensor["sha256"]}


def sha256(values):
    return hashlib.sha256(struct.pack("<%df" % len(values), *values)).hexdigest()


def chunk(indices, count, which):
    """As torch.chunk()."""
    length = -(-len(indices) // count) if indices else 0
    return indices[which * length:(which + 1) * length]


def local_part(shape, mesh, coordinate, placements):
    """The indices of each dimension that a rank has. `placements` are None,
    ("shard", dim) or ("strided", dim, split), which divides last."""
    has = [list(range(length)) for length in shape]
    ordered = [(i, p) for i, p in enumerate(placements) if p and
               p[0] == "shard"]
    ordered += [(i, p) for i, p in enumerate(placements) if p and
                p[0] == "strided"]
    for i, placement in ordered:
        dim = placement[1]
        has[dim] = chunk(has[dim], mesh[i], coordinate[i])
    return has


def picked(values, shape, has):
    if not shape:
        return list(values)
    result = [0]
    for length, indices in zip(shape, has):
        result = [at * length + i for at in result for i in indices]
    return [values[at] for at in result]


def spec_of(placement):
    if placement is None:
        return torch.replicate()
    if placement[0] == "shard":
        return torch.shard(placement[1])
    return torch.strided_shard(placement[1], placement[2])


def random_layout(draw):
    shape = [draw.choice((1, 2, 3, 5, 7, 8)) for _ in range(draw.randrange(4))]
    mesh = [draw.choice((1, 2, 3, 4)) for _ in range(draw.randrange(1, 4))]
    placements = []
    for _ in mesh:
        if shape and draw.random() < 0.7:
            placements.append(("shard", draw.randrange(len(shape))))
        else:
            placements.append(None)
    # FSDP over tensor parallelism: the outer dimension divides last.
    if len(mesh) == 2 and shape and draw.random() < 0.3:
        dim = draw.randrange(len(shape))
        placements = [("strided", dim, mesh[1]), ("shard", dim)]
    return shape, mesh, placements


def layouts(program, folder, count):
    draw = random.Random(20)
    for case in range(count):
        shape, mesh, placements = random_layout(draw)
        total = 1
        for length in shape:
            total *= length
        values = [draw.uniform(-1, 1) for _ in range(total)]
        values = list(struct.unpack("<%df" % total,
                                    struct.pack("<%df" % total, *values)))
        where = os.path.join(folder, "ranks")
        style = draw.choice(("layout", "tensor", "ranks"))
        name = draw.choice(("checkpoint_%d.pt", "model_rank_%d.pt"))
        world = 1
        for length in mesh:
            world *= length
        for rank in range(world):
            device_mesh = torch.mesh(mesh, rank, style)
            left = rank
            coordinate = []
            for length in reversed(mesh):
                coordinate.insert(0, left % length)
                left //= length
            has = local_part(shape, mesh, coordinate, placements)
            part = picked(values, shape, has)
            if draw.random() < 0.5 and len(has) == 2:
                # A view of a transposed storage.
                rows, columns = len(has[0]), len(has[1])
                storage = torch.Storage("float32", struct.pack(
                    "<%df" % len(part),
                    *[part[r * columns + c] for c in range(columns)
                      for r in range(rows)]))
                local = torch.view(storage, [rows, columns],
                                   stride=[1, max(rows, 1)])
            else:
                local = torch.tensor("float32", [len(d) for d in has], part)
            weight = torch.dtensor(shape, local, device_mesh,
                                   [spec_of(p) for p in placements])
            torch.save(os.path.join(where, name % rank), {
                "model": {"w": weight, "tied": weight,
                          "b": torch.tensor("float32", [2], [1.5, 2.5])},
                "step": 7,
                "rng": torch.tensor("float32", [1], [float(rank)]),
                "rank": rank}, crc=draw.random() < 0.5)
        found = digests(program, where)
        wanted = sha256(values)
        assert found["model.w"] == wanted, (case, shape, mesh, placements)
        assert found["model.tied"] == wanted
        assert found["model.b"] == sha256([1.5, 2.5])
        rngs = {key for key in found if key.startswith("rng")}
        assert len(rngs) == world, (rngs, world)
        run(program, "verify", where)
        made = os.path.join(folder, "merged.pt")
        run(program, "merge", where, made)
        assert digests(program, made) == found
        listed = json.loads(run(program, "ls", "--json", "--all", made))
        steps = [value for value in listed["nodes"]
                 if value["key"] == "step"] if "nodes" in listed else [1]
        assert len(steps) == 1
        os.remove(made)
        shutil.rmtree(where)


def sharded_tensors(program, folder):
    where = os.path.join(folder, "sharded")
    values = [float(i) for i in range(35)]
    for rank, (begin, end) in enumerate(((0, 3), (3, 6), (6, 7))):
        part = torch.tensor("float32", [end - begin, 5],
                            values[begin * 5:end * 5])
        torch.save(os.path.join(where, "model_world_size_3_rank_%d.pt" % rank),
                   {"w": torch.sharded_tensor([7, 5], [([begin, 0], part)])})
    assert digests(program, where) == {"w": sha256(values)}
    os.remove(os.path.join(where, "model_world_size_3_rank_1.pt"))
    text = run(program, "ls", where, expect=1)
    assert "rank 1 has no file" in text and "cover 20 of its 35" in text, text


def refusals(program, folder):
    """What is not one tensor is not joined."""
    def make(name, parts, crc=True):
        where = os.path.join(folder, name)
        for rank, thing in enumerate(parts):
            torch.save(os.path.join(where, "checkpoint_%d.pt" % rank),
                       {"w": thing, "x": torch.tensor("float32", [1], [1.0])},
                       crc=crc)
        return where

    def part(rank, values, placements, mesh=(2,), shape=(4,), **spec):
        return torch.dtensor(shape, torch.tensor("float32", [len(values)],
                                                 values),
                             torch.mesh(mesh, rank), placements, **spec)

    both = [part(rank, [1.0, 2.0, 3.0, 4.0 + rank], [torch.replicate()])
            for rank in range(2)]
    for crc in (True, False):  # with CRCs it is seen on opening
        where = make("replicas%d" % crc, both, crc)
        text = run(program, "verify", where, expect=1)
        assert "differ" in text, text
        assert set(digests(program, where, expect=1)) == {"x"}
        assert digests(program, where, "--rank", "1")["w._local_tensor"] == (
            sha256([1.0, 2.0, 3.0, 5.0]))
        run(program, "merge", where, os.path.join(folder, "no.pt"), expect=2)
    where = make("partial", [part(rank, [1.0, 2.0, 3.0, 4.0],
                                  [torch.partial()]) for rank in range(2)])
    assert "partial results" in run(program, "ls", where, expect=1)
    where = make("sizes", [part(0, [1.0, 2.0, 3.0], [torch.shard(0)]),
                           part(1, [4.0], [torch.shard(0)])])
    assert "but its shard is (3)" in run(program, "ls", where, expect=1)
    where = make("shapes", [part(0, [1.0, 2.0], [torch.shard(0)]),
                            part(1, [3.0], [torch.shard(0)], shape=(3,))])
    assert "another rank of a (4)" in run(program, "ls", where, expect=1)
    where = make("beyond", [part(rank, [1.0, 2.0], [torch.shard(5)])
                            for rank in range(2)])
    assert "dimension 5 of a tensor" in run(program, "ls", where, expect=1)
    where = make("mixed", [part(0, [1.0, 2.0], [torch.shard(0)]),
                           torch.tensor("float32", [2], [3.0, 4.0])])
    assert "something else under its key" in run(program, "ls", where, expect=1)
    where = make("meshless", [torch.dtensor(
        [4], torch.tensor("float32", [2], [1.0, 2.0]),
        torch.made("torch.distributed.device_mesh.DeviceMesh"),
        [torch.shard(0)]) for _ in range(2)])
    assert "mesh is not described" in run(program, "ls", where, expect=1)
    where = make("strided", [torch.dtensor(
        [8], torch.tensor("float32", [4], values), torch.mesh([2], rank),
        [torch.strided_shard(0, 2)], use_strided_shard_as_shard_order=False)
        for rank, values in ((0, [0.0, 1.0, 4.0, 5.0]),
                             (1, [2.0, 3.0, 6.0, 7.0]))])
    assert digests(program, where)["w"] == sha256(
        [float(i) for i in range(8)])


def stages(program, folder):
    """Pipeline stages have different keys; their meshes are not the world."""
    where = os.path.join(folder, "stages")
    for rank in range(4):
        stage, place = divmod(rank, 2)
        local = torch.tensor("float32", [2],
                             [4.0 * stage + 2 * place + i for i in range(2)])
        torch.save(os.path.join(where, "model_rank_%d.pt" % rank), {
            "layers.%d.w" % stage: torch.dtensor(
                [4], local, torch.mesh([2], place), [torch.shard(0)])})
    assert digests(program, where) == {
        "layers.0.w": sha256([0.0, 1.0, 2.0, 3.0]),
        "layers.1.w": sha256([4.0, 5.0, 6.0, 7.0])}


def plain_ranks(program, folder):
    """Without placements only the user knows how tensors lie."""
    where = os.path.join(folder, "plain")
    for rank in range(2):
        torch.save(os.path.join(where, "mp_rank_%02d" % rank, "model.pt"), {
            "qkv.weight": torch.tensor(
                "float32", [1, 2], [2.0 * rank, 2.0 * rank + 1]),
            "norm.weight": torch.tensor("float32", [2], [1.0, 1.0])})
    made = os.path.join(folder, "plain.pt")
    run(program, "merge", where, made)
    assert set(digests(program, made)) == {
        "qkv.weight[0]", "qkv.weight[1]", "norm.weight"}
    run(program, "merge", where, made, "--force", "--concat", "qkv*=0")
    assert digests(program, made) == {
        "qkv.weight": sha256([0.0, 1.0, 2.0, 3.0]),
        "norm.weight": sha256([1.0, 1.0])}
    run(program, "merge", where, made, "--force", "--concat", "qkv*=1")
    shape = json.loads(run(program, "ls", "--json", made, "--keys", "qkv*"))
    assert shape["tensors"][0]["shape"] == [1, 4]
    run(program, "merge", where, made, "--force", "--concat", "qkv*=2",
        expect=2)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        layouts(program, folder, 60)
        sharded_tensors(program, folder)
        refusals(program, folder)
        stages(program, folder)
        plain_ranks(program, folder)


if __name__ == "__main__":
    main()
