#!/usr/bin/env python3
"""Reads a distributed checkpoint of 5,000 files with few of them open, and
what is left of it when one is missing.

usage: dcp_files_test.py POSTFLIGHT
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import dcp_maker  # noqa: E402  beside this file

PROGRAM = sys.argv[1]
FILES = 5000
COLUMNS = 4


def few_open_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def run(*arguments):
    return subprocess.run([PROGRAM, "ckpt", *arguments], capture_output=True,
                          text=True, preexec_fn=few_open_files, check=False)


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def row(index):
    return dcp_maker.floats([index + column / 8 for column in range(COLUMNS)])


with tempfile.TemporaryDirectory() as folder:
    chunks = []
    for index in range(FILES):
        name = f"__{index}_0.distcp"
        data = dcp_maker.item([1, COLUMNS], row(index))
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
        chunks.append(dcp_maker.Chunk([index, 0], [1, COLUMNS], name, 0,
                                      len(data)))
    with open(os.path.join(folder, ".metadata"), "wb") as file:
        file.write(dcp_maker.metadata([("model.w", [FILES, COLUMNS], chunks)]))

    whole = run("digest", folder, "--json")
    expect((whole.returncode, whole.stderr), (0, ""))
    expect([(tensor["path"], tensor["sha256"])
            for tensor in json.loads(whole.stdout)["tensors"]],
           [(["model", "w"], hashlib.sha256(
               b"".join(row(index) for index in range(FILES))).hexdigest())])

    os.remove(os.path.join(folder, "__17_0.distcp"))
    missing = "the metadata names __17_0.distcp, which is not in the folder"

    def read(*arguments):
        return subprocess.run(
            [PROGRAM, "ckpt", "read", folder, "--keys", "model.w", "--format",
             "raw", "-o", "-", *arguments], capture_output=True,
            preexec_fn=few_open_files, check=False)

    # Exit 1, as the folder is damaged, with the bytes that were asked for.
    there = read("--slice", "[18:20]")
    expect((there.returncode, there.stdout, there.stderr),
           (1, row(18) + row(19),
            f"postflight: {missing} (__17_0.distcp)\n".encode()))
    for arguments, message in (
            (("--slice", "[16:20]"), f"model.w at (17, 0): {missing}"),
            ((), f"its chunk at (17, 0) of size (1, 4) is unavailable: "
                 f"{missing}")):
        gone = read(*arguments)
        expect((gone.returncode, gone.stdout), (2, b""))
        assert message in gone.stderr.decode(), gone.stderr

print(f"{FILES} files read with 256 open at most")


# Metadata that finds an item in the middle of another's tensor, where it is a
# pickle that runs a program. Issue 16.
with tempfile.TemporaryDirectory() as folder:
    evil = b"\x80\2cposix\nsystem\nX\2\0\0\0id\x85R."
    data = dcp_maker.item([1, 16], (b"\xff" * 4 + evil).ljust(64, b"\0"))
    with open(os.path.join(folder, "__0_0.distcp"), "wb") as file:
        file.write(data)
    with open(os.path.join(folder, ".metadata"), "wb") as file:
        file.write(dcp_maker.metadata([("w", [2, 16], [
            dcp_maker.Chunk([0, 0], [1, 16], "__0_0.distcp", 0, len(data)),
            dcp_maker.Chunk([1, 0], [1, 16], "__0_0.distcp", data.index(evil),
                            len(evil))])]))
    found = run("verify", folder)
    expect((found.returncode, found.stdout.split("\n")[0]),
           (1, f"DAMAGED  DANGEROUS  {folder}"))
    found = run("scan", folder)
    expect((found.returncode, found.stdout.split(":")[0]),
           (1, f"DANGEROUS  {folder}/.metadata"))
