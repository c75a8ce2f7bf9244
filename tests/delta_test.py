"""Deltas make the second checkpoint of the first, whatever the formats, and
refuse any other first; folded ones do what they do one after the other.

usage: delta_test.py PROGRAM
"""

import json
import os
import random
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
    assert expect is None or done.returncode == expect, (
        arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout.decode() + done.stderr.decode()


def tensors(program, path):
    answer = json.loads(run(program, "digest", "--json", path))
    return {t["key"]: (t["dtype"], t["shape"], t["sha256"])
            for t in answer["tensors"]}


def values(program, path):
    return run(program, "read", path, "--values", "-")


class Run:
    """A state dict whose tensors change from step to step."""

    def __init__(self, draw):
        self.draw = draw
        self.parts = {}
        self.step = 0
        for i in range(draw.randrange(2, 8)):
            self.add("layers.%d.weight" % i)

    def add(self, name):
        dtype = self.draw.choice(("float32", "bfloat16", "int64", "uint8"))
        # Some are longer than a block.
        count = self.draw.choice((0, 1, 7, 1000, 300_000))
        size = struct.calcsize(torch.CODES[dtype])
        self.parts[name] = [dtype, count,
                            bytearray(self.draw.randbytes(count * size))]

    def advance(self):
        self.step += 1
        for part in self.parts.values():
            how = self.draw.randrange(4)
            for _ in range(how * 3 if part[2] else 0):
                part[2][self.draw.randrange(len(part[2]))] ^= (
                    1 << self.draw.randrange(8))
        how = self.draw.random()
        names = sorted(self.parts)
        if how < 0.2:
            self.add("new.%d" % self.step)
        elif how < 0.4 and len(names) > 2:
            del self.parts[self.draw.choice(names)]
        elif how < 0.6:
            name = self.draw.choice(names)
            self.parts["moved.%d" % self.step] = self.parts.pop(name)

    def save(self, path):
        tree = {}
        for name, (dtype, count, contents) in self.parts.items():
            tree[name] = torch.view(torch.Storage(dtype, bytes(contents)),
                                    [count])
        first = next(iter(tree.values()))
        torch.save(path, {"model": tree, "tied": first, "step": self.step,
                          "lr": [0.1 * self.step]})


def chains(program, folder, count):
    draw = random.Random(20)
    for case in range(count):
        job = Run(draw)
        steps = []
        for i in range(4):
            path = os.path.join(folder, "step_%d.pt" % i)
            job.save(path)
            job.advance()
            if draw.random() < 0.3:
                other = os.path.join(folder, "step_%d_dcp" % i)
                run(program, "convert", path, other, "--to", "dcp", "--force")
                path = other
            steps.append(path)
        deltas = []
        for i in range(3):
            deltas.append(os.path.join(folder, "%d.pfdelta" % i))
            run(program, "delta", steps[i], steps[i + 1], "-o", deltas[i],
                "--force")
            made = os.path.join(folder, "made.pt")
            run(program, "apply", steps[i], deltas[i], made, "--force")
            assert tensors(program, made) == tensors(program, steps[i + 1])
            assert values(program, made) == values(program, steps[i + 1])
        folded = os.path.join(folder, "folded.pfdelta")
        run(program, "fold", *deltas, "-o", folded, "--force")
        made = os.path.join(folder, "made.safetensors")
        run(program, "apply", steps[0], folded, made, "--keys", "model.*",
            "--force")
        wanted = {key: value
                  for key, value in tensors(program, steps[3]).items()
                  if key.startswith("model.")}
        assert tensors(program, made) == wanted
        again = os.path.join(folder, "again.pfdelta")
        run(program, "fold", deltas[0], deltas[1], "-o", again, "--force")
        run(program, "fold", again, deltas[2], "-o", folded, "--force")
        made = os.path.join(folder, "made.pt")
        run(program, "apply", steps[0], folded, made, "--force")
        assert tensors(program, made) == tensors(program, steps[3])
        # The wrong base, and the wrong order.
        if tensors(program, steps[1]) != tensors(program, steps[0]):
            text = run(program, "apply", steps[1], deltas[0], made, "--force",
                       expect=None)
            assert ("not the checkpoint that the delta was made of" in text
                    or tensors(program, made) == tensors(program, steps[1])), (
                        text)
        text = run(program, "fold", deltas[1], deltas[0], "-o", again,
                   "--force", expect=None)
        assert "does not begin where" in text or not text.startswith("post")


def small(program, folder):
    """A small change makes a small file."""
    a, b = (os.path.join(folder, name) for name in ("a.pt", "b.pt"))
    contents = bytearray(random.Random(1).randbytes(4 << 20))
    torch.save(a, {"w": torch.view(torch.Storage("float32", bytes(contents)),
                                   [1024, 1024])})
    for at in range(0, 1 << 20, 4096):
        contents[at] ^= 1
    torch.save(b, {"w": torch.view(torch.Storage("float32", bytes(contents)),
                                   [1024, 1024])})
    delta = os.path.join(folder, "d.pfdelta")
    run(program, "delta", a, b, "-o", delta)
    assert os.path.getsize(delta) < 20_000, os.path.getsize(delta)
    text = run(program, "ls", delta, expect=2)
    assert "ckpt apply" in text, text
    text = run(program, "apply", a, delta, a, "--force", expect=2)
    assert "belongs to the checkpoint" in text, text

    # Damage is found, not applied.
    with open(delta, "rb") as file:
        whole = file.read()
    made = os.path.join(folder, "c.pt")
    draw = random.Random(3)
    for case in range(150):
        at = draw.randrange(len(whole))
        cut = (whole[:at] if case % 3 == 0 else
               whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) +
               whole[at + 1:])
        with open(delta, "wb") as file:
            file.write(cut)
        if os.path.exists(made):
            os.remove(made)
        text = run(program, "apply", a, delta, made, expect=None)
        if os.path.exists(made):
            found = tensors(program, made)
            assert [t[2] for t in found.values()] == [
                t[2] for t in tensors(program, b).values()], (case, at, text)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        chains(program, folder, 12)
        small(program, folder)


if __name__ == "__main__":
    main()
