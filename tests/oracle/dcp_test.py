"""Compares every distributed checkpoint of tests/data with what was saved.

The manifests hold the SHA-256 of each whole tensor, and the repr of each other
value, under torch's flat names.

usage: dcp_test.py PROGRAM
"""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data")
FOLDERS = ["dcp_chain", "dcp_fsdp", "dcp_hf", "dcp_multi_file",
           "dcp_no_collectives", "dcp_plain", "dcp_rot13", "dcp_safetensors",
           "dcp_threads"]


def flat(path):
    return ".".join(str(step) for step in path)


def run(program, *arguments):
    done = subprocess.run([program, "ckpt", *arguments, "--json"],
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, (arguments, done.returncode, done.stdout)
    return json.loads(done.stdout)


def check(program, folder, *options):
    """Returns how many tensors and values were compared."""
    path = os.path.join(DATA, folder)
    with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    tensors = {flat(tensor["path"]): tensor for tensor in
               run(program, "digest", *options, path)["tensors"]}
    values = {flat(value["path"]): value for value in
              run(program, "ls", "--all", *options, path)["values"]}
    compared = [0, 0]
    for name, wanted in manifest.items():
        where = f"{folder}: {name}"
        if "sha256" in wanted:
            found = tensors.pop(name, None)
            assert found is not None, where
            assert found["dtype"] == wanted["dtype"].removeprefix("torch.")
            assert found["shape"] == wanted["shape"], where
            assert found["sha256"] == wanted["sha256"], where
            compared[0] += 1
        else:
            assert name in values, where
            if "value" in values[name]:
                assert values[name]["value"] == wanted["py"], where
                compared[1] += 1
    assert not tensors, (folder, sorted(tensors))
    return compared


def main():
    program = sys.argv[1]
    total = [0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        plugin = os.path.join(temporary, "xor15.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-I",
                        os.path.join(ROOT, "include"), "-o", plugin,
                        os.path.join(ROOT, "examples", "xor15_transform.c")],
                       check=True)
        for folder in FOLDERS:
            options = ["--plugin", plugin] if folder == "dcp_chain" else []
            compared = check(program, folder, *options)
            total = [a + b for a, b in zip(total, compared)]
    assert total[0] > 50 and total[1] > 5, total
    print("%d tensors and %d values are as they were saved" % tuple(total))


if __name__ == "__main__":
    main()
