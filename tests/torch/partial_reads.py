"""Reads parts of checkpoints into modules and optimizers, and compares them with
what torch itself loads.

    PYTHONPATH=python python3 tests/torch/partial_reads.py

For any torch. Exit 1 if a value differs.
"""

import copy
import os
import sys
import tempfile

try:
    import torch
except ImportError:
    print("SKIPPED    torch is not installed")
    sys.exit(0)

import postflight

failed = 0


def check(what, right):
    global failed
    failed += not right
    print(f"{'RIGHT' if right else 'DIFFERENT':<9}  {what}")


def model():
    return torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5),
                               torch.nn.Linear(5, 3, bias=False))


def same(one, other):
    return list(one) == list(other) and all(
        torch.equal(one[key], other[key]) for key in one)


def trained():
    """A model and its optimizer after a few steps."""
    torch.manual_seed(1)
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.rand(4, 7)).sum().backward()
        optimizer.step()
    return net, optimizer


def printed(path, end):
    """The path of a tensor as `postflight ckpt ls` prints it."""
    checkpoint = postflight.Checkpoint(path)
    for number in range(checkpoint.node(0).end):
        if checkpoint.path_of(number).endswith(("." + end, f"'{end}'")):
            return checkpoint.path_of(number)
    raise KeyError(end)


def main():
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    net, optimizer = trained()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint_0.pt")
        torch.save({"model": net.state_dict(), "epoch": 3,
                    "optimizer": optimizer.state_dict()}, path)
        reader = postflight.CheckpointReader(
            postflight.RankInfo(global_world_size=1, global_rank=0))

        fresh = model()
        before = {name: value.data_ptr()
                  for name, value in fresh.state_dict().items()}
        state, missing = reader.read(folder, {"model": fresh.state_dict()})
        check("a model's state, in place",
              same(fresh.state_dict(), net.state_dict()) and missing == []
              and before == {name: value.data_ptr()
                             for name, value in fresh.state_dict().items()})
        check("nothing else was read", list(state) == ["model"])

        fresh = model()
        state, missing = reader.read(
            folder, {"model": dict(fresh[0].named_parameters(prefix="0")),
                     "epoch": None, "scheduler": None})
        check("the parameters of one layer",
              torch.equal(fresh[0].weight, net[0].weight)
              and fresh[0].weight.requires_grad
              and not torch.equal(fresh[2].weight, net[2].weight))
        check("a value, and what is missing",
              state["epoch"] == 3 and missing == ["scheduler"])

        fresh = model()
        kept = copy.deepcopy(fresh.state_dict())
        wrong = {"model": {**fresh.state_dict(), "2.weight": torch.zeros(3, 6)}}
        try:
            reader.read(folder, wrong)
            check("another shape is an error", False)
        except Exception:
            check("another shape is an error, and nothing was changed",
                  same(fresh.state_dict(), kept))

        other = torch.optim.Adam(model().parameters(), lr=0.5)
        other.load_state_dict(reader.read(folder, {"optimizer": None})[0]
                              ["optimizer"])
        check("an optimizer",
              other.state_dict()["param_groups"]
              == optimizer.state_dict()["param_groups"]
              and all(torch.equal(value, other.state_dict()["state"][at][name])
                      for at, one in optimizer.state_dict()["state"].items()
                      for name, value in one.items()
                      if isinstance(value, torch.Tensor)))

        rows = postflight.load(
            path, slices={printed(path, "0.weight"): "[1:3]"})
        check("rows of a weight",
              torch.equal(next(iter(rows.values())), net[0].weight[1:3]))

        loaded = postflight.load(path, mmap=True)["model"]
        fresh = model()
        fresh.load_state_dict(loaded)
        check("views of the mapped file", same(fresh.state_dict(),
                                               net.state_dict()))
        with torch.no_grad():
            loaded["0.weight"].zero_()
        check("what is written to a view stays in this process",
              same(postflight.load(path)["model"], net.state_dict()))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
