"""A checkpoint of more than 6 GiB, with holes so that it takes no disk.

Its last record and its directory lie beyond 4 GiB, so that sizes and offsets
take 64 bits, as torch writes them. Listing, slicing, digesting and verifying it
must take no more memory than for a small file.
"""

import collections
import hashlib
import io
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import types
import zlib

LARGE = 6 << 30
MOST_MEMORY = 64 << 20


class Storage:
    def __init__(self, key, numel):
        self.id = ("storage", sys.modules["torch"].ByteStorage, key, "cpu",
                   numel)


def stand_in():
    """torch's names, as far as a state dict needs them."""
    torch = types.ModuleType("torch")
    utils = types.ModuleType("torch._utils")
    torch.ByteStorage = type("ByteStorage", (), {"__module__": "torch"})

    def rebuild(*_):
        raise AssertionError("never called")

    rebuild.__name__ = rebuild.__qualname__ = "_rebuild_tensor_v2"
    rebuild.__module__ = "torch._utils"
    utils._rebuild_tensor_v2 = rebuild
    sys.modules.update({"torch": torch, "torch._utils": utils})


class Tensor:
    def __init__(self, key, shape, numel):
        self.arguments = (Storage(key, numel), 0, shape,
                          (shape[1], 1), False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None


def dumped(value):
    out = io.BytesIO()
    Pickler(out, 2).dump(value)
    return out.getvalue()


class Archive:
    def __init__(self, file):
        self.file = file
        self.lines = []

    def add(self, record, contents=b"", hole=0):
        name = b"sparse/" + record
        size = hole or len(contents)
        header = self.file.tell()
        wide = b""
        if size >= 0xFFFFFFFF or header >= 0xFFFFFFFF:
            wide = struct.pack("<QQ", size, 0) if size >= 0xFFFFFFFF else b""
            wide += struct.pack("<Q", header) if header >= 0xFFFFFFFF else b""
            wide = struct.pack("<HH", 1, len(wide)) + wide
        start = header + 30 + len(name) + 4 + len(wide)
        padding = -start % 64
        extra = wide + b"FB" + struct.pack("<H", padding) + b"Z" * padding
        self.file.write(struct.pack("<IHHHIIIIHH", 0x04034B50, 0, 0x0808, 0, 0,
                                    0, 0, 0, len(name), len(extra))
                        + name + extra)
        if hole:
            self.file.seek(hole, os.SEEK_CUR)
        else:
            self.file.write(contents)
        # Of a hole torch writes no CRC.
        crc = 0 if hole else zlib.crc32(contents)
        self.file.write(struct.pack("<IIQQ" if wide else "<IIII", 0x08074B50,
                                    crc, size, size))
        wide = b""
        if size >= 0xFFFFFFFF:
            wide += struct.pack("<QQ", size, size)
        if header >= 0xFFFFFFFF:
            wide += struct.pack("<Q", header)
        if wide:
            wide = struct.pack("<HH", 1, len(wide)) + wide
        short = min(size, 0xFFFFFFFF)
        self.lines.append(struct.pack(
            "<IHHHHIIIIHHHHHII", 0x02014B50, 0, 0, 0x0808, 0, 0, crc, short,
            short, len(name), len(wide), 0, 0, 0, 0, min(header, 0xFFFFFFFF))
            + name + wide)

    def finish(self):
        begin = self.file.tell()
        for line in self.lines:
            self.file.write(line)
        size = self.file.tell() - begin
        count = len(self.lines)
        self.file.write(
            struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 0x031E, 45, 0, 0, count,
                        count, size, begin)
            + struct.pack("<IIQI", 0x07064B50, 0, begin + size, 1)
            + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size,
                          0xFFFFFFFF, 0))


def run(program, *arguments):
    done = subprocess.run([program, "ckpt", *arguments],
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, (arguments, done.returncode)
    return done.stdout


def main():
    program = sys.argv[1]
    stand_in()
    last = bytes(range(256)) * 4
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sparse.pt")
        with open(path, "wb") as file:
            archive = Archive(file)
            archive.add(b"data.pkl", dumped({
                "large": Tensor("0", (LARGE >> 12, 4096), LARGE),
                "last": Tensor("1", (4, 256), len(last))}))
            archive.add(b"byteorder", b"little")
            archive.add(b"data/0", hole=LARGE)
            archive.add(b"data/1", last)
            archive.add(b"version", b"3\n")
            archive.finish()
        assert os.path.getsize(path) > LARGE
        listing = json.loads(run(program, "ls", "--json", path))
        assert [t["bytes"] for t in listing["tensors"]] == [LARGE, 1024]
        found = json.loads(run(program, "verify", "--json", path))
        assert found["verdict"] == "whole", found
        assert found["crc"] == {"good": 4, "absent": 1, "bad": 0,
                                "bytes": found["crc"]["bytes"]}, found
        digests = json.loads(run(program, "digest", "--json", path))
        sums = [t["sha256"] for t in digests["tensors"]]
        assert sums[1] == hashlib.sha256(last).hexdigest()
        zeros = hashlib.sha256()
        for _ in range(LARGE >> 24):
            zeros.update(bytes(1 << 24))
        assert sums[0] == zeros.hexdigest()
        rows = run(program, "read", path, "--keys", "large", "--slice",
                   "[-2:, :8]", "--format", "raw", "-o", "-")
        assert rows == bytes(16), rows
        rows = run(program, "read", path, "--keys", "last", "--slice",
                   "[1, 3:6]", "--format", "raw", "-o", "-")
        assert rows == bytes((3, 4, 5)), rows
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert peak < MOST_MEMORY, peak
    print("6 GiB read in at most %.0f MiB of memory" % (peak / (1 << 20)))


if __name__ == "__main__":
    main()
