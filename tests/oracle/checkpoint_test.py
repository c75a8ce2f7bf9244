"""Compares every checkpoint of tests/data with what torch read from it.

The manifests beside the files hold, for each key path, the dtype, shape,
stride, offset and SHA-256 of each tensor as torch 2.11 saw it.
"""

import json
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                    "data")
# What needs no digests: files that torch cannot read, or only by running them.
NOTES = {"bitflip.pt", "truncated.pt", "full_module.pt", "evil_reduce.pt",
         "torchscript.pt", "packaged.pt", "skip_data.pt", "cycle.pt",
         "bytesio.pt"}
PLAIN = {"int", "float", "bool", "NoneType", "str", "bytes"}


def run(program, *arguments):
    done = subprocess.run([program, "ckpt", *arguments, "--json"],
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 1), (arguments, done.returncode)
    return json.loads(done.stdout)


def manifest_path(path, dicts=()):
    """A path as the manifests print it; they write integer keys of a dict as
    texts."""
    text = ""
    for number, step in enumerate(path):
        if isinstance(step, dict):
            step = step.get("repr", step.get("text"))
        if isinstance(step, int) and json.dumps(path[:number]) not in dicts:
            text += "[%d]" % step
        else:
            text += ("." if text else "") + str(step)
    return text


def by_path(items, dicts=()):
    found = {}
    for item in items:
        found.setdefault(manifest_path(item["path"], dicts), []).append(item)
    return found


def check_tensor(where, wanted, tensor, digest):
    dtype = wanted.get("dtype", wanted.get("numpy"))
    assert tensor["dtype"] == dtype.removeprefix("torch.").lstrip("<"), where
    if wanted["shape"] is None:
        assert tensor["layout"] in ("nested", "jagged"), where
    else:
        assert tensor["shape"] == wanted["shape"], where
    if "stride" in wanted and tensor["layout"] == "strided":
        elements = 1
        for size in wanted["shape"]:
            elements *= size
        # The strides of an empty tensor are meaningless.
        if elements > 0:
            assert tensor["stride"] == wanted["stride"], where
            assert tensor["offset"] == wanted["offset"], where
    if "requires_grad" in wanted and tensor["layout"] == "strided":
        assert tensor["requires_grad"] == wanted["requires_grad"], where
    if "kind" in wanted and wanted["kind"] == "Parameter":
        assert tensor["role"] == "parameter", where
    if wanted.get("kind") not in (None, "Tensor", "Parameter"):
        assert (tensor.get("type", "").endswith(wanted["kind"])
                or tensor["layout"] == wanted["kind"]), where
    if "device" in wanted:
        assert tensor["device"] == wanted["device"], where
    if "layout" in wanted and wanted["layout"] != "torch.strided":
        assert "torch." + tensor["layout"] == wanted["layout"], where
    if "sha256" in wanted:
        assert digest == wanted["sha256"], (where, digest)


class Count:
    tensors = 0
    values = 0


def check_file(program, folder, name, wanted, rank=None):
    path = os.path.join(DATA, folder, name)
    extra = ["--rank", str(rank)] if rank is not None else []
    listing = run(program, "ls", "--all", path, *extra)
    digests = run(program, "digest", path, *extra)
    dicts = {json.dumps(value["path"]) for value in listing["values"]
             if value["kind"] == "dict"}
    tensors = by_path(listing["tensors"], dicts)
    values = by_path(listing["values"], dicts)
    sums = by_path(digests["tensors"], dicts)
    storages = {}
    for key, entry in wanted.items():
        where = "%s/%s: %s" % (folder, name, key)
        if key == "note" or key.endswith("#"):
            continue
        if "py" in entry:
            if key not in values and key in tensors:
                continue  # a numpy scalar
            assert key in values, where
            if entry.get("type") in PLAIN and len(entry["py"]) < 190:
                assert any(value.get("value") == entry["py"]
                           and value["type"] == entry["type"]
                           for value in values[key]), (where, values[key])
                Count.values += 1
            continue
        assert key in tensors, where
        # An int key and a string may print alike: one of them must match.
        failures = []
        for number, tensor in enumerate(tensors[key]):
            found = [s for s in sums.get(key, []) if s["path"] == tensor["path"]]
            try:
                check_tensor(where, entry, tensor,
                             found[0]["sha256"] if found else None)
                break
            except AssertionError as failure:
                failures.append(failure)
        else:
            raise failures[0]
        if "storage" in entry and entry["nbytes"] > 0:
            assert storages.setdefault(entry["storage"], tensor["storage"]) == \
                tensor["storage"], where
        Count.tensors += 1
    if storages:
        assert len(set(storages.values())) == len(storages), name
    # Nothing is made up: other tensors are parts of these.
    for key in tensors:
        known = key in wanted or any(key.startswith(other) for other in wanted
                                     if other)
        assert known or folder == "ckpt_more", (name, key)


def check_torchscript(program):
    """Its tensors equal those of the state dict in train_state.pt."""
    script = run(program, "digest", os.path.join(DATA, "ckpt/torchscript.pt"))
    state = run(program, "digest", os.path.join(DATA, "ckpt/train_state.pt"))
    wanted = {s["key"].removeprefix("model.").strip('"'): s["sha256"]
              for s in state["tensors"] if s["key"].startswith("model.")}
    found = {manifest_path(s["path"]): s["sha256"] for s in script["tensors"]}
    assert script["format"] == "torchscript"
    assert len(found) == 9 and found == wanted, (found, wanted)


def main():
    program = sys.argv[1]
    for folder in ("ckpt", "ckpt_more"):
        with open(os.path.join(DATA, folder, "manifest.json"),
                  encoding="utf-8") as file:
            manifest = json.load(file)
        for name, wanted in manifest.items():
            if name in NOTES or ":" in name:
                continue
            check_file(program, folder, name, wanted)
            if name.startswith("ranks/"):
                rank = int(name.removesuffix(".pt").rpartition("_")[2])
                check_file(program, folder, "ranks", wanted, rank)
    check_torchscript(program)
    # Files without a manifest of their own have their contents elsewhere.
    package = run(program, "ls", os.path.join(DATA, "ckpt_more/packaged.pt"))
    assert package["format"] == "torch_package"
    assert [t["shape"] for t in package["tensors"]] == [[3]], package
    assert Count.tensors >= 734 and Count.values >= 171, vars(Count)
    print("%d tensors and %d values are as torch read them"
          % (Count.tensors, Count.values))


if __name__ == "__main__":
    main()
