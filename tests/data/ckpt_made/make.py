#!/usr/bin/python3
"""Makes the checkpoints beside it, which torch would not write like this.

    tests/data/ckpt_made/make.py

prefixes.pt             prefixes that take turns: a.w, b.w, a.b, b.b
unreadable.pt           one tensor beyond its storage, three of 2**63 bytes
wrong_size.pt           a storage that is longer than its record
numbers.safetensors     integers beyond 2**53, doubles whose sum overflows
shards/                 two shards with the same metadata, and some that differ
"""

import json
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def text(value):
    return b"V%s\n" % value.encode()


def numbers(values):
    return b"(" + b"".join(b"L%dL\n" % value for value in values) + b"t"


def tensor(record, stored, shape, stride):
    """A tensor of 32-bit floats, as opcodes."""
    storage = (b"(" + text("storage") + b"ctorch\nFloatStorage\n" +
               text(record) + text("cpu") + b"I%d\n" % stored + b"tQ")
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"I0\n" +
            numbers(shape) + numbers(stride) +
            b"I00\nccollections\nOrderedDict\n(tRtR")


def torch_archive(name, tensors, records):
    pickle = b"(d" + b"".join(
        text(key) + value + b"s" for key, value in tensors.items()) + b"."
    with zipfile.ZipFile(HERE / name, "w") as archive:
        def add(path, data):
            archive.writestr(zipfile.ZipInfo(f"made/{path}"), data)
        add("data.pkl", pickle)
        add("byteorder", "little")
        for key, values in records.items():
            add(f"data/{key}", struct.pack(f"<{len(values)}f", *values))
        add("version", "3\n")


def safetensors(name, tensors, metadata=None):
    header = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for key, (dtype, code, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}{code}", *values)
        header[key] = {"dtype": dtype, "shape": [len(values)],
                       "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    described = json.dumps(header).encode()
    described += b" " * (-len(described) % 8)
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(described)) + described + data)


def main():
    torch_archive(
        "prefixes.pt",
        {key: tensor(str(i), 2, [2], [1])
         for i, key in enumerate(["a.w", "b.w", "a.b", "b.b"])},
        {str(i): [1, 2] for i in range(4)})
    endless = tensor("0", 2, [2**61], [0])
    torch_archive(
        "unreadable.pt",
        {"good": tensor("0", 2, [2], [1]), "beyond": tensor("0", 2, [3], [1]),
         "x": endless, "y": endless, "z": endless,
         "last": tensor("0", 2, [2, 1], [1, 1])},
        {"0": [1, 2]})
    torch_archive("wrong_size.pt", {"w": tensor("0", 4, [2], [1])},
                  {"0": [1, 2]})
    nan = float("nan")
    safetensors("numbers.safetensors", {
        "signed": ("I64", "q", [2**63 - 1, -2**63]),
        "unsigned": ("U64", "Q", [2**64 - 1, 2**53 + 1]),
        "large": ("F64", "d", [1e308, -1e308, 1.7e308]),
        "nan": ("F32", "f", [nan, nan]),
        "none": ("F32", "f", []),
    })
    for shard in (1, 2):
        safetensors(
            f"shards/model-0000{shard}-of-00002.safetensors",
            {f"w{shard}": ("F32", "f", [shard])},
            {"format": "pt", "made": f"shard {shard}"})
    (HERE / "shards/model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"total_size": 8},
         "weight_map": {f"w{shard}": f"model-0000{shard}-of-00002.safetensors"
                        for shard in (1, 2)}}) + "\n")


if __name__ == "__main__":
    main()
