"""Writes the profiles beside it, as src/profile/profile_log.h says they look.

An implementation of its own, so that writer and reader cannot be wrong
together. Two ranks of a program that compiles, loads and trains.
"""
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
STACKS = {  # name: frames, the outermost first
    "load": [("<module>", 40), ("main", 34), ("load", 12)],
    "parse": [("<module>", 40), ("main", 34), ("load", 13), ("parse", 5)],
    "compile": [("<module>", 40), ("main", 35), ("build", 22)],
    "step": [("<module>", 40), ("main", 37), ("step", 28)],
    "grad": [("<module>", 40), ("main", 37), ("step", 29), ("backward", 18)],
}


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value):
    return number(len(value.encode())) + value.encode()


def block(items):
    checksum = 2166136261
    for byte in items:
        checksum = (checksum ^ byte) * 16777619 & 0xffffffff
    return struct.pack("<II", len(items), checksum) + items


class Log:
    def __init__(self):
        self.items = b""
        self.texts = {"": 0}
        self.frames = {}
        self.stacks = {}
        self.time = 0

    def add(self, kind, *numbers):
        self.items += bytes([kind]) + b"".join(map(number, numbers))

    def text(self, value):
        if value not in self.texts:
            self.texts[value] = len(self.texts)
            self.items += b"\x01" + text(value)
        return self.texts[value]

    def frame(self, name, line):
        key = (0, self.text(name), self.text("train.py"), line)
        if key not in self.frames:
            self.frames[key] = len(self.frames)
            self.add(2, *key)
        return self.frames[key]

    def stack(self, frames):
        node = 0
        for name, line in frames:
            key = (node, self.frame(name, line))
            if key not in self.stacks:
                self.stacks[key] = len(self.stacks) + 1
                self.add(3, *key)
            node = self.stacks[key]
        return node

    def sample(self, name, phase, count, flags=0):
        node = self.stack(STACKS[name])
        for _ in range(count):
            self.add(6, 10_000_000, 10_000_000, 0, node, phase, flags)


def write(rank, steps):
    log = Log()
    for key, value in {"mode": "wall", "rate": "100", "python": "3.11.2",
                       "engine": "external, reads without stopping",
                       "command": "python train.py"}.items():
        log.items += b"\x07" + text(key) + text(value)
    log.add(4, 0, log.text("compile"), log.text("0/0"))
    log.add(4, 0, log.text("train"), 0)
    log.add(5, rank + 1, 100 + rank, 100 + rank, log.text("python train.py"),
            log.text("python"))
    log.sample("load", 0, 10, flags=1)
    log.sample("parse", 0, 5)
    log.sample("compile", 1, 25)
    log.sample("step", 2, steps)
    log.sample("grad", 2, 40)
    for key, value in {"samples": 80 + steps, "lost": 1, "torn": 0, "cut": 0,
                       "unreadable": 0}.items():
        log.items += b"\x08" + text(key) + number(value)
    (HERE / f"train-rank{rank}.pflog").write_bytes(
        b"PFPROF\x01\n" + block(log.items))


write(0, 20)
write(1, 120)
whole = (HERE / "train-rank0.pflog").read_bytes()
last = block(bytes([6]) + b"".join(map(number, (1, 1, 0, 1, 0, 0))))
(HERE / "cut.pflog").write_bytes(whole + last[:-2])
