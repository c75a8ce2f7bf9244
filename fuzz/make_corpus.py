#!/usr/bin/python3
"""Makes the seeds under fuzz/corpus again: make_corpus.py [noun ...]

Each function yields the name and the bytes of every seed of one noun: small
real files from tests/data, and what a hostile writer would make of them.
"""

import io
import pathlib
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "tests" / "data"


def zipped(entries, method=zipfile.ZIP_STORED, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment
        for name, contents in entries:
            # A fixed date, so that the same seeds come out every time.
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


NOUNS = {
    "disassembler": pickle_seeds,
    "machine": pickle_seeds,
    "pickle_file": file_seeds,
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
