"""GGUF files, made after the public layout, are listed and converted; whatever
is cut or changed in one ends in an answer or an error.

usage: gguf_test.py PROGRAM
"""

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

F32, F16, Q8_0, Q4_K, BF16 = 0, 1, 8, 12, 30
SIZES = {F32: (1, 4), F16: (1, 2), BF16: (1, 2), Q8_0: (32, 34),
         Q4_K: (256, 144)}


def text(value, version=3):
    data = value.encode()
    return struct.pack("<I" if version == 1 else "<Q", len(data)) + data


def pair(key, kind, data, version=3):
    return text(key, version) + struct.pack("<I", kind) + data


def gguf(tensors, pairs=(), version=3, alignment=None):
    """`tensors` are (name, shape as torch has it, type, bytes)."""
    count = "<I" if version == 1 else "<Q"
    pairs = list(pairs)
    if alignment:
        pairs.append(pair("general.alignment", 4,
                          struct.pack("<I", alignment)))
    step = alignment or 32
    header = b"GGUF" + struct.pack("<I", version)
    header += struct.pack(count, len(tensors)) + struct.pack(count, len(pairs))
    header += b"".join(pairs)
    data = b""
    for name, shape, kind, contents in tensors:
        header += text(name, version) + struct.pack("<I", len(shape))
        header += b"".join(struct.pack(count, length)
                           for length in reversed(shape))
        header += struct.pack("<IQ", kind, len(data))
        data += contents + bytes(-len(contents) % step)
    return header + bytes(-len(header) % step) + data


def run(program, *arguments, expect=0):
    done = subprocess.run([program, "ckpt", *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert expect is None or done.returncode == expect, (
        arguments, done.returncode, done.stdout, done.stderr)
    text = done.stdout.decode() + done.stderr.decode()
    return done.returncode, " ".join(text.split())  # lines are wrapped


def tensors_of(program, path):
    answer = json.loads(run(program, "digest", "--json", path)[1])
    return {t["key"]: (t["dtype"], t["shape"], t["sha256"])
            for t in answer["tensors"]}


def main():
    program = os.path.abspath(sys.argv[1])
    draw = random.Random(20)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.gguf")

        def save(contents):
            with open(path, "wb") as file:
                file.write(contents)

        tensors = [
            ("token_embd.weight", [3, 4], F32, draw.randbytes(48)),
            ("blk.0.attn_q.weight", [2, 3], F16, draw.randbytes(12)),
            ("blk.0.ffn.weight", [2, 64], Q8_0, draw.randbytes(2 * 2 * 34)),
            ("blk.1.ffn.weight", [1, 256], Q4_K, draw.randbytes(144)),
            ("output.weight", [5], BF16, draw.randbytes(10))]
        pairs = [pair("general.architecture", 8, text("llama")),
                 pair("llama.block_count", 4, struct.pack("<I", 2)),
                 pair("x.scale", 6, struct.pack("<f", 0.5)),
                 pair("tokens", 9, struct.pack("<IQ", 8, 2) + text("a") +
                      text("b"))]
        names = {F32: "float32", F16: "float16", BF16: "bfloat16",
                 Q8_0: "Q8_0", Q4_K: "Q4_K"}
        wanted = {name: (names[kind], shape,
                         hashlib.sha256(contents).hexdigest())
                  for name, shape, kind, contents in tensors}
        for version in (2, 3):
            for alignment in (None, 64):
                save(gguf(tensors, pairs, version, alignment))
                assert tensors_of(program, path) == wanted
        save(gguf(tensors, [], 1))
        assert tensors_of(program, path) == wanted
        save(gguf(tensors, pairs))
        _, listed = run(program, "ls", path)
        assert "general.architecture = llama" in listed, listed
        assert "tokens = [2 items]" in listed, listed
        made = os.path.join(folder, "m.safetensors")
        _, why = run(program, "convert", path, made, expect=2)
        assert "Q8_0" in why, why
        run(program, "convert", path, made, "--keys", "token*", "--keys",
            "output*")
        assert tensors_of(program, made) == {
            key: wanted[key] for key in ("token_embd.weight", "output.weight")}
        run(program, "verify", path)

        # Damage.
        whole = gguf(tensors, pairs)
        for end in range(0, len(whole), 7):
            save(whole[:end])
            code, _ = run(program, "ls", path, expect=None)
            assert code in (0, 1, 2), (end, code)
        save(whole[:-40])
        _, why = run(program, "ls", path, expect=1)
        assert "truncated: 4 of 5 tensors are whole" in why, why
        for _ in range(300):
            at = draw.randrange(len(whole))
            save(whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1:])
            code, _ = run(program, "digest", path, expect=None)
            assert code in (0, 1, 2), (at, code)
        save(b"GGUF" + struct.pack(">I", 3) + bytes(100))
        assert "big-endian" in run(program, "ls", path, expect=2)[1]
        save(b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0))
        assert "more than the file can hold" in run(program, "ls", path,
                                                    expect=2)[1]
        save(gguf([("x", [1 << 40, 1 << 40], F32, b"")]))
        assert "larger than any memory" in run(program, "ls", path,
                                               expect=1)[1]
        save(gguf([("x", [2, 33], Q8_0, bytes(100))]))
        assert "not whole blocks" in run(program, "ls", path, expect=1)[1]
        save(gguf([("x", [4], 77, bytes(100))]))
        assert "ggml_type_77" in run(program, "ls", path, expect=1)[1]


if __name__ == "__main__":
    main()
