#!/usr/bin/python3
"""Regenerates the seeds in fuzz/corpus: make_corpus.py [noun ...]

Each function yields the name and the bytes of every seed of one noun: small
real files from tests/data, and what a hostile writer would make of them. Those
of `transform` were written by `postflight stream encode`, each behind the
number of its transform, with a key of zeros.
"""

import gzip
import io
import json
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "tests" / "data"


def zipped(entries, method=zipfile.ZIP_STORED, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment
        for name, contents in entries:
            # A fixed date, so that the seeds are reproducible.
            archive.writestr(zipfile.ZipInfo(name), contents, method)
    return out.getvalue()


def end_record(entries, size, offset, comment_size=0):
    return b"PK\5\6" + struct.pack(
        "<4H2IH", 0, 0, entries, entries, size, offset, comment_size
    )


def zip64_end(entries, size, offset, at):
    record = b"PK\6\6" + struct.pack(
        "<Q2H2I4Q", 44, 45, 45, 0, 0, entries, entries, size, offset
    )
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at, 1)
    return record + locator + end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def zip_seeds():
    for name in (
        "ckpt/basic.pt",
        "ckpt/nocrc.pt",
        "ckpt/torchscript.pt",
        "ckpt_more/empties.pt",
        "ckpt_more/rezipped_deflated.pt",
        "ckpt_more/rezipped_stored.pt",
        "ckpt_more/trailing.pt",
        "dcp_plain/__0_0.distcp",
        "dcp_plain/__3_0.distcp",
    ):
        yield name.replace("/", "-"), (DATA / name).read_bytes()

    small = zipped([("a/data.pkl", b"\x80\2}."), ("a/version", b"3\n")])
    directory = small.index(b"PK\1\2")
    size = len(small) - 22 - directory
    yield "small", small
    yield "prefixed", b"#!/bin/sh\nexit 0\n" + small
    yield "cut-in-directory", small[: directory + 30]
    yield "second-cut", small + small[:40]
    yield "commented", zipped([("a/b", b"c")], comment=b"PK\5\6 is no end")
    yield "comment-too-long", small[:-22] + end_record(2, size, directory, 999)
    yield "duplicate", zipped([("a/b", b"1"), ("a/B", b"2")]).replace(
        b"a/B", b"a/b"
    )
    yield "bomb", zipped([("a/b", bytes(2 << 20))], zipfile.ZIP_DEFLATED)
    yield "one-more-inflated", zipped(
        [("a/b", b"12345678" * 9)], zipfile.ZIP_DEFLATED
    ).replace(struct.pack("<I", 72), struct.pack("<I", 71))
    yield "signatures", b"PK\5\6" * 64
    yield "empty-archives", end_record(0, 0, 0) * 50
    yield "count-2-32", small[:-22] + zip64_end(
        1 << 32, size, directory, directory + size
    )
    for word, value in (("max", 2**64 - 1), ("negative", 2**63)):
        yield f"offset-{word}", small[:-22] + zip64_end(
            2, size, value, directory + size
        )
        yield f"size-{word}", small[:-22] + zip64_end(
            2, value, directory, directory + size
        )
        yield f"zip64-at-{word}", small[:-22] + zip64_end(
            2, size, directory, value
        )
    yield "zip64-good", small[:-22] + zip64_end(
        2, size, directory, directory + size
    )
    entry = small[directory : small.index(b"PK\1\2", directory + 4)]
    yield "overlapping", small[:directory] + entry * 20 + end_record(
        20, 20 * len(entry), directory
    )


def pickle_seeds():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE.parent / "tests" / "oracle"))
    import make_pickles

    for name in (
        "flight/gloo_crashed_rank/gloo_trace_rank_0",
        "flight/nccl_wrapped/nccl_trace_rank_0",
    ):
        yield name.replace("/", "-"), (DATA / name).read_bytes()
    for name, contents in make_pickles.HANDMADE:
        yield name, contents
    node = make_pickles.Node()
    node.next = {node: [node, (1, 2.5, None, True, "t\xe9xt", b"bytes")]}
    for protocol in range(6):
        yield f"cycle-{protocol}", make_pickles.dump(node, protocol, False)

    for word, count in (("max", b"\xff"), ("negative", b"\0\0\0\x80")):
        for code in b"XTB\x8b":
            data = bytes((code,)) + (count * 4)[:4] + b"abc."
            yield f"count4-{word}-{code:02x}", data
        for code in b"\x8d\x8e\x95\x96":
            data = bytes((code,)) + count * (8 // len(count)) + b"abc."
            yield f"count8-{word}-{code:02x}", data
    yield "memo-index-max", b"]r\xff\xff\xff\xffj\xff\xff\xff\xff."
    yield "memo-index-text", b"]p99999999999\ng99999999999\n."
    yield "long-digits", b"L" + b"9" * 4400 + b"L\n."
    yield "marks", b"(" * 2000 + b"l" * 2000 + b"."
    yield "doubling", b"]" + b"2\x86" * 60 + b"."
    yield "no-stop", b"\x80\4]"
    yield "no-line-end", b"cos"
    yield "only-stop", b"."
    yield "not-utf8", b"X\4\0\0\0\xff\xc0\x80\xed."


def file_seeds():
    yield from pickle_seeds()
    yield from zip_seeds()


def zstd_raw(contents):
    """A zstd frame with one uncompressed block."""
    return (b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(contents) - 256)
            + struct.pack("<I", len(contents) << 3 | 1)[:3] + contents)


def zstd_same(byte, count):
    """A zstd frame with one RLE block of `count` bytes."""
    return (b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", count)
            + struct.pack("<I", count << 3 | 3)[:3] + byte)


def compression_seeds():
    dump = (DATA / "flight/nccl_healthy/nccl_trace_rank_0").read_bytes()[:3000]
    member = gzip.compress(dump, mtime=0)
    frame = zstd_raw(dump)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    for name, good in (("gzip", member), ("zstd", frame)):
        yield name, good
        yield f"{name}-twice", good * 2
        yield f"{name}-cut", good[: len(good) // 2]
        yield f"{name}-more", good + b"more"
        yield f"{name}-flipped", good[:99] + bytes((good[99] ^ 1,)) + good[100:]
    yield "gzip-padded", member + bytes(64)
    yield "gzip-empty", gzip.compress(b"", mtime=0)
    yield "gzip-bomb", gzip.compress(bytes(2 << 20), mtime=0)
    yield "zstd-skippable", skippable + frame + skippable
    yield "zstd-skippable-large", skippable[:4] + b"\xff\xff\xff\xff"
    yield "zstd-empty", b"\x28\xb5\x2f\xfd\x20\0\1\0\0"
    yield "zstd-same", zstd_same(b"s", 1 << 17)
    yield "zstd-bomb", zstd_same(b"s", 1 << 17) * 20
    yield "zstd-window-large", b"\x28\xb5\x2f\xfd\0\xf8\1\0\0"
    yield "plain", b"plain"


def tar_seeds():
    long_name = "/".join(["folder"] * 30)
    for name, kind in (
        ("ustar", tarfile.USTAR_FORMAT),
        ("gnu", tarfile.GNU_FORMAT),
        ("pax", tarfile.PAX_FORMAT),
    ):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
            for path, contents in (
                ("rank_0", b"zero"),
                (long_name, b"one"),
                ("r\xe4nk_2", b"2" * 600),
                ("empty", b""),
            ):
                info = tarfile.TarInfo(path)
                info.size = len(contents)
                archive.addfile(info, io.BytesIO(contents))
            info = tarfile.TarInfo("link")
            info.type = tarfile.SYMTYPE
            info.linkname = long_name[:90]
            archive.addfile(info)
        yield name, out.getvalue()
        yield f"{name}-cut", out.getvalue()[:2600]
        yield f"{name}-unpadded", out.getvalue().rstrip(b"\0")

    def member(path, size, type, contents=b""):
        info = tarfile.TarInfo(path)
        info.size = size
        info.type = type
        return info.tobuf(tarfile.GNU_FORMAT) + contents

    yield "size-binary", member("a", 2**63, b"0")
    yield "size-negative", member("a", 0, b"0")[:124] + b"\xff" * 12
    yield "sparse", member("a", 0, b"S")
    yield "long-name-huge", member("a", 2**33, b"L")
    for name, record in (
        ("size", b"27 size=9999999999999999999\n"),
        ("length", b"99 path=a\n"),
        ("no-value", b"8 patha\n"),
        ("sparse", b"22 GNU.sparse.major=1\n"),
    ):
        block = record.ljust(512, b"\0")
        yield f"pax-{name}", member("x", len(record), b"x", block) + member(
            "a", 0, b"0"
        ) + bytes(1024)


def samples(*names):
    def seeds():
        for name in names:
            path = HERE.parent / "tests/data" / name
            yield path.name, path.read_bytes()

    return seeds


def tar_checkpoint_seeds():
    """What torch before 0.1.10 wrote: two tensors, a storage, a view of it."""

    class Key:
        def __init__(self, key):
            self.key = key

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value.key if isinstance(value, Key) else None

    def dumped(value):
        return pickle.dumps(value, 2)

    def named(key, other):
        parts = dumped((key, other))
        # One more item: a global, put in before the pair becomes a triple.
        return parts[:-4] + b"ctorch\nFloatStorage\n" + b"\x87" + b"."

    out = io.BytesIO()
    Pickler(out, 2).dump({"w": Key(7), "n": 3, "s": Key(3)})
    storages = (dumped(1) + named(3, "cpu") + struct.pack("<q", 6)
                + struct.pack("<6f", *range(6)) + dumped([(4, 3, 2, 2)]))
    tensors = (dumped(2) + named(7, 3) + struct.pack("<ii", 2, 0)
               + struct.pack("<5q", 2, 2, 3, 1, 1) + named(8, 4)
               + struct.pack("<ii", 1, 0) + struct.pack("<3q", 2, 1, 0))
    members = {"sys_info": dumped({"protocol_version": 1000}),
               "pickle": out.getvalue(), "storages": storages,
               "tensors": tensors}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w",
                      format=tarfile.USTAR_FORMAT) as tar:
        for name, contents in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    yield "views.tar", packed.getvalue()


def dump_seeds():
    for case, rank in (("nccl_mesh_hang", 0), ("nccl_gpu_stall_timing", 1),
                       ("nccl_p2p_ring_coalesced", 2), ("gloo_healthy", 3)):
        backend = case.split("_")[0]
        path = DATA / "flight" / case / f"{backend}_trace_rank_{rank}"
        yield case, path.read_bytes()
        yield f"{case}-cut", path.read_bytes()[:900]
    yield "json", (b'{"entries":[{"record_id":0,"profiling_name":"nccl:send'
                   b' 0->1","input_sizes":[[4]]}],"version":"2.10"}')


def json_seeds():
    for name in ("ckpt/hf/model.safetensors.index.json",
                 "flight/gloo_straggler/truth.json"):
        yield name.replace("/", "-"), (DATA / name).read_bytes()
    yield "numbers", b'[0, -1, 1e308, 9223372036854775808, 1.5E-7, 1e999]'
    yield "texts", b'["\\u00e4\\ud83d\\ude00\\n", "\xc3\xa4", "", "a", "a"]'
    yield "same-keys", b'{"a": 1, "a": {"a": [null, true, false]}}'
    yield "cut", b'{"version": "2", "entries": [{"a": 1}, {"b": '
    yield "deep", b"[" * 600
    yield "marked", b"\xef\xbb\xbf[]"


def hostile_log():
    """States whose numbers are at the ends, of groups that overlap."""
    numbers = (-1, 0, 1, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, -(2**63))
    for rank, number in enumerate(numbers):
        work = (
            f"WorkNCCL(SeqNum={number}, OpType=_ALLGATHER_BASE, "
            f"NumelIn={number}, NumelOut={number}, Timeout(ms)={number})"
        )
        yield f"[rank{rank}]: [Rank {rank}] Watchdog caught {work}"
        for group in ("PG 0", "PG ID 1 PG GUID 5(mesh_tp)", "PG ID 2 PG GUID ("):
            for place in (0, rank, 2**31 - 1):
                yield (
                    f"[rank{rank}]: [{group} Rank {place}] Timeout at NCCL "
                    f"work: {number}, last enqueued NCCL work: {number}, last "
                    f"completed NCCL work: {number - 1}. {work}"
                )
    yield f"nranks {2**20} Ranks {', '.join('99999' for _ in numbers)} failed"
    yield "[" + "1, " * 500 + "2] finished collective #1, but didn't join"
    yield "Rank 1 is running collective: " * 20
    yield '{"message": {"message": "\\'


def job_log_seeds():
    for path in sorted((DATA / "logs").glob("*.log")):
        yield path.stem, path.read_bytes()
    yield "hostile", "\n".join(hostile_log()).encode()
    for name, text in (
        ("hostfile", "node1 slots=8 max_slots=8\nuser@node2:8\nnode3\n"),
        ("table", "rank,host\n0,a\n1-3,b\n"),
        ("pairs", "a 0-3,5\n4 b\n"),
        ("node-list", "gpu[001-004,7]n[1-2],login x8"),
        (
            "variables",
            "SLURM_JOB_NODELIST=n[01-03,7]\nSLURM_TASKS_PER_NODE=8(x3),4\n",
        ),
        ("many", "a[0-999]b[0-999]c[0-999] 8(x4294967295)\n"),
    ):
        yield "hosts-" + name, text.encode()


def dcp_metadata_seeds():
    for name in ("plain", "chain", "fsdp", "safetensors", "rot13"):
        yield name, (DATA / f"dcp_{name}" / ".metadata").read_bytes()
    yield "rank_1", (DATA / "dcp_no_collectives/__1.metadata").read_bytes()


def folder_of(files):
    """As folder_fuzz.cc reads them."""
    return b"".join(
        bytes((len(name.encode()),)) + name.encode()
        + struct.pack("<I", len(contents)) + contents
        for name, contents in files)


def part(tensors, offsets):
    """A safetensors file of torch's writer for Hugging Face."""
    header, data = {}, b""
    for name, (dtype, shape, contents) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(contents)]}
        data += contents
    header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(
        {name: {"saved_offsets": start} for name, start in offsets.items()})}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def folder_seeds():
    # The last tensor of the second file does not fit that of the first.
    first = part({"a": ("F32", [2], b"aaaabbbb"), "b": ("F32", [1], b"cccc")},
                 {"a": [0], "b": [0]})
    second = part({"a": ("F32", [1], b"dddd"), "b": ("I64", [1], b"e" * 8)},
                  {"a": [2], "b": [1]})
    third = part({"c": ("F32", [1], b"ffff")}, {"c": [0]})
    yield "parts", folder_of([("1.safetensors", first),
                              ("2.safetensors", second),
                              ("3.safetensors", third)])
    plain = zipped([("a/data.pkl", b"\x80\2}."), ("a/version", b"3\n")])
    yield "ranks", folder_of([("checkpoint_0.pt", plain),
                              ("checkpoint_1.pt", plain[:40])])
    for name in ("dcp_plain", "dcp_chain", "dcp_safetensors", "dcp_hf",
                 "ckpt_made/shards", "ckpt/ranks", "sharded/fsdp",
                 "sharded/zero2", "sharded/zero3"):
        files = [(path.name, path.read_bytes())
                 for path in sorted((DATA / name).iterdir())
                 if path.name != "manifest.json" and path.is_file()]
        if sum(len(contents) for _, contents in files) < 40_000:
            yield name.replace("/", "-"), folder_of(files)


NOUNS = {
    "folder": folder_seeds,
    "checkpoint": samples(
        *(f"ckpt/{name}.pt" for name in (
            "basic", "views", "sparse", "quantized", "conj_neg", "meta",
            "params", "evil_reduce", "torchscript")),
        *(f"ckpt_more/{name}.pt" for name in (
            "cycle", "dtensor", "empties", "jagged", "numpy", "objects",
            "packaged", "rezipped_deflated", "truncated", "bitflip"))),
    "legacy": samples("ckpt/legacy.pt", "ckpt/legacy_list.pt",
                      "ckpt_more/legacy_cuda.pt"),
    "safetensors": samples("ckpt/plain.safetensors",
                           "ckpt_more/all.safetensors"),
    "gguf": samples("sharded/tiny.gguf"),
    "tar_checkpoint": tar_checkpoint_seeds,
    "compression": compression_seeds,
    "dcp_metadata": dcp_metadata_seeds,
    "disassembler": pickle_seeds,
    "dump": dump_seeds,
    "job_log": job_log_seeds,
    "json": json_seeds,
    "machine": pickle_seeds,
    "pickle_file": file_seeds,
    "tar": tar_seeds,
    "writer": pickle_seeds,
    "zip": zip_seeds,
}


def main():
    for noun in sys.argv[1:] or NOUNS:
        folder = HERE / "corpus" / noun
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, contents in NOUNS[noun]():
            (folder / name).write_bytes(contents)


if __name__ == "__main__":
    main()
