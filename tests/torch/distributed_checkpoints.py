"""Saves distributed checkpoints through our transforms by torch, and reads them
by torch and by us.

    PYTHONPATH=python python3 tests/torch/distributed_checkpoints.py

Needs a torch whose FileSystemWriter takes _extensions (2.7 and later); with an
older one it says what it leaves out. Exit 1 if a value differs.
"""

import inspect
import os
import sys
import tempfile

try:
    import torch
    import torch.distributed.checkpoint as dcp
except ImportError as error:
    print(f"SKIPPED    torch with distributed checkpoints: {error}")
    sys.exit(0)

import postflight

KEY = "00112233445566778899aabbccddeeff" * 2
failed = 0


def check(what, right):
    global failed
    failed += not right
    print(f"{'RIGHT' if right else 'DIFFERENT':<9}  {what}")


def state():
    torch.manual_seed(2)
    return {"model": {"weight": torch.rand(300, 70),
                      "bias": torch.rand(70).to(torch.bfloat16),
                      "empty": torch.zeros(0, 3)},
            "epoch": 4, "names": ["a", "b"]}


def empty():
    return {"model": {name: torch.full_like(value, -1)
                      for name, value in state()["model"].items()},
            "epoch": 0, "names": []}


def same(one, other):
    return (list(one["model"]) == list(other["model"])
            and all(torch.equal(one["model"][name], value)
                    for name, value in other["model"].items())
            and one["epoch"] == other["epoch"]
            and list(one["names"]) == list(other["names"]))


def save(content, writer):
    """By whatever this torch calls it, without other ranks."""
    if hasattr(dcp, "save"):
        options = {"no_dist": True} if "no_dist" in inspect.signature(
            dcp.save).parameters else {}
        dcp.save(content, storage_writer=writer, **options)
    else:
        dcp.save_state_dict(content, writer, no_dist=True)


def load(content, reader):
    if hasattr(dcp, "load"):
        options = {"no_dist": True} if "no_dist" in inspect.signature(
            dcp.load).parameters else {}
        dcp.load(content, storage_reader=reader, **options)
    else:
        dcp.load_state_dict(content, reader, no_dist=True)


def ours(folder, **options):
    """The same tree by us; keys of the flat one are paths."""
    found = postflight.load(folder, safe=False, **options)
    if "model" in found:
        return found
    tree = {"model": {}, "epoch": found["epoch"], "names": found.get("names")}
    for key, value in found.items():
        if key.startswith("model."):
            tree["model"][key[len("model."):]] = value
    return tree


def plain():
    """Without transforms: every torch that has distributed checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            # Old ones take flat dicts only.
            flat = {f"model.{name}": value
                    for name, value in state()["model"].items()
                    if value.numel()}
            save(flat, dcp.FileSystemWriter(folder))
        except Exception as error:
            print(f"SKIPPED    without transforms: this torch cannot save by "
                  f"itself: {' '.join(str(error).split())[:80]}")
            return
        found = postflight.load(folder, safe=False)
        if "model" in found:
            found = {f"model.{name}": value
                     for name, value in found["model"].items()}
        check("without transforms, by us",
              sorted(found) == sorted(flat)
              and all(torch.equal(found[name], value)
                      for name, value in flat.items()))


def with_transforms():
    if "_extensions" not in inspect.signature(
            dcp.FileSystemWriter.__init__).parameters:
        print("SKIPPED    through transforms: FileSystemWriter of this torch "
              "takes no _extensions (2.7 does)")
        return
    from torch.distributed.checkpoint import _extension
    postflight.register_with_torch()
    chains = {
        "rot13, torch's own": [_extension.Rot13Example()],
        "rot13": [postflight.Rot13Example()],
        "zstd": [postflight.ZStandard(level=5)],
        "lz4": [postflight.Lz4()],
        "checksum": [postflight.Checksum()],
        "zstd and checksum": [postflight.ZStandard(), postflight.Checksum()],
    }
    if hasattr(_extension, "ZStandard") and getattr(
            _extension, "HAS_ZSTD", getattr(_extension.ZStandard, "is_available",
                                            lambda: False)()):
        chains["zstd, torch's own"] = [_extension.ZStandard()]
    for name, extensions in chains.items():
        with tempfile.TemporaryDirectory() as folder:
            save(state(), dcp.FileSystemWriter(folder, _extensions=extensions))
            found = empty()
            load(found, dcp.FileSystemReader(
                folder,
                _extension_registry=_extension.ExtensionRegistry()))
            check(f"{name}: by torch", same(found, state()))
            check(f"{name}: by us", same(ours(folder), state()))
            verdict = postflight.Checkpoint(folder).verify()
            check(f"{name}: verified by us", verdict.get("ok", True) is True)
    with tempfile.TemporaryDirectory() as folder:
        save(state(), dcp.FileSystemWriter(
            folder, _extensions=[postflight.Aead(key=KEY)]))
        check("aead: by us with the key", same(ours(folder, key=KEY), state()))
        names = [name for name in os.listdir(folder) if name.endswith("distcp")]
        raw = b"".join(open(os.path.join(folder, name), "rb").read()
                       for name in names)
        weight = bytes(state()["model"]["weight"].numpy())
        check("aead: the weights are not in the files as they are",
              weight[:64] not in raw)


def main():
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    plain()
    with_transforms()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
