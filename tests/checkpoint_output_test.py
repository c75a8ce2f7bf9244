"""What `ckpt convert`, `reshard` and `salvage` write.

Archives of torch.save come out byte for byte the same; every format converts
to every other and back with equal digests; whenever a writer is killed, there is
the old state or the new; salvage keeps every whole tensor of a file cut anywhere.
Where Debian's torch is installed, it loads what we wrote.

usage: checkpoint_output_test.py PROGRAM
"""

import io
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_maker  # noqa: E402  beside this file

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")

# Written by torch 2.11, whole and with CRCs. bytesio.pt was written to memory,
# so its records are in a folder of another name.
OTHERS = {"legacy.pt", "legacy_list.pt", "legacy_cuda.pt", "nocrc.pt",
          "skip_data.pt", "bitflip.pt", "bytesio.pt", "packaged.pt",
          "rezipped_deflated.pt", "rezipped_stored.pt", "trailing.pt",
          "truncated.pt", "torchscript.pt"}


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, expect=0):
        done = subprocess.run([self.path, "ckpt", *arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode("utf-8", "replace")
        assert done.returncode == expect, (arguments, done.returncode, text)
        return text

    def digests(self, path):
        """Pairs of digest and key, without the findings after them."""
        done = subprocess.run([self.path, "ckpt", "digest", "--json", path],
                              check=True, stdout=subprocess.PIPE)
        return {tensor["key"]: (tensor["sha256"], tensor["dtype"],
                                tensor["shape"])
                for tensor in json.loads(done.stdout)["tensors"]}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def same_bytes(program, folder):
    count = 0
    for part in ("ckpt", "ckpt_more"):
        for name in sorted(os.listdir(os.path.join(DATA, part))):
            if not name.endswith(".pt") or name in OTHERS:
                continue
            source = os.path.join(DATA, part, name)
            target = os.path.join(folder, name)
            program.run("convert", source, target)
            assert read(source) == read(target), source
            os.remove(target)
            count += 1
    assert count > 30, count
    return count


DTYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2,
          "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2,
          "U32": 4, "C64": 8}


def random_safetensors(path, draw):
    """A file of random tensors, some of them empty or without dimensions."""
    header = {}
    data = b""
    for i in range(draw.randrange(1, 12)):
        dtype = draw.choice(sorted(DTYPES))
        shape = [draw.choice((0, 1, 2, 3, 5, 8, 17))
                 for _ in range(draw.randrange(0, 4))]
        size = DTYPES[dtype]
        for length in shape:
            size *= length
        name = draw.choice(("model.layers.%d.weight", "w%d", "a.%d.b.c",
                            "ünï %d", "opt[%d]"))
        contents = (bytes(draw.randrange(2) for _ in range(size))
                    if dtype == "BOOL" else draw.randbytes(size))
        header[name % i] = {"dtype": dtype, "shape": shape,
                            "data_offsets": [len(data), len(data) + size]}
        data += contents
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


CHAINS = (
    (("a.pt", []), ("b", ["--to", "dcp"]), ("c.safetensors", [])),
    (("a", ["--to", "hf", "--shard-size", "64B"]), ("b.pt", []),
     ("c", ["--to", "dcp", "--with", "stream.zstd/1,stream.rot13/1"]),
     ("d.safetensors", [])),
    (("a", ["--to", "dcp", "--with", "stream.checksum@postflight/1"]),
     ("b", ["--to", "hf"]), ("c", ["--to", "dcp"]), ("d.pt", []),
     ("e.safetensors", [])),
)


def round_trips(program, folder, count):
    draw = random.Random(20)
    for i in range(count):
        start = os.path.join(folder, "start.safetensors")
        random_safetensors(start, draw)
        wanted = program.digests(start)
        for chain in CHAINS:
            at = start
            made = []
            for name, options in chain:
                target = os.path.join(folder, "%s" % name)
                if name[1:] == "" and "dcp" in options and draw.random() < 0.5:
                    ranks = str(draw.randrange(1, 6))
                    dim = str(draw.randrange(0, 3))
                    program.run("reshard", at, target, "--ranks", ranks,
                                "--dim", dim, *options[2:])
                else:
                    program.run("convert", at, target, *options)
                made.append(target)
                at = target
            found = program.digests(at)
            assert {key.replace('"', ""): value
                    for key, value in found.items()} == wanted, (i, chain)
            for target in made:
                (shutil.rmtree if os.path.isdir(target) else os.remove)(target)
        os.remove(start)


def random_tree(draw, depth=0):
    """Dicts, lists and tuples of tensors and other values."""
    kind = draw.random()
    if depth > 3 or (depth > 0 and kind < 0.5):
        if kind < 0.4:
            dtype = draw.choice(sorted(torch_maker.CODES))
            shape = [draw.choice((0, 1, 2, 3, 5, 17))
                     for _ in range(draw.randrange(4))]
            count = 1
            for length in shape:
                count *= length
            size = struct.calcsize(torch_maker.CODES[dtype])
            storage = torch_maker.Storage(dtype, draw.randbytes(count * size))
            made = torch_maker.view(storage, shape)
            return torch_maker.parameter(made) if draw.random() < 0.3 else made
        return draw.choice((3, -1, 2**40, 0.5, True, None, "text", "ü"))
    keys = draw.sample(("weight", "bias", "a.b", "step", 0, 7, "exp avg"),
                       draw.randrange(1, 5))
    items = [random_tree(draw, depth + 1) for _ in keys]
    if depth == 0 or kind < 0.8:
        return dict(zip(keys, items))
    return items if kind < 0.9 else tuple(items)


TREE_CHAINS = (
    ((["--to", "dcp"],), (["--to", "torch"],)),
    ((["--to", "torch", "--keys", "*"],),
     (["--to", "dcp", "--with", "stream.zstd/1,stream.rot13/1"],),
     (["--to", "torch"],)),
    ((["--to", "dcp", "--with", "stream.checksum@postflight/1"],),
     (["--to", "dcp"],), (["--to", "torch"],)),
    ((["--to", "safetensors", "--drop-values"],),
     (["--to", "hf", "--shard-size", "100B"],), (["--to", "dcp"],),
     (["--to", "torch"],), (["--to", "safetensors"],)),
)


def random_trees(program, folder, count):
    """Whatever the way through the formats, the manifest of the first holds."""
    draw = random.Random(21)
    start = os.path.join(folder, "start.pt")
    manifest = os.path.join(folder, "manifest.json")
    done = 0
    while done < count:
        tree = random_tree(draw)
        torch_maker.save(start, tree)
        wanted = program.digests(start)
        plain = {key.replace('"', ""): value for key, value in wanted.items()}
        if not wanted or len(plain) < len(wanted):
            continue  # nothing to carry, or names that a flat format lacks
        program.run("digest", start, "--manifest", manifest, "--force")
        for i, chain in enumerate(TREE_CHAINS):
            at = start
            made = []
            for (options,) in chain:
                target = os.path.join(folder, "step%d" % len(made))
                if "dcp" in options and draw.random() < 0.5:
                    program.run("reshard", at, target, "--ranks",
                                str(draw.randrange(1, 5)), "--dim",
                                str(draw.randrange(2)), *options[2:])
                else:
                    program.run("convert", at, target, *options)
                made.append(target)
                at = target
            found = {key.replace('"', ""): value
                     for key, value in program.digests(at).items()}
            # Keys that are numbers are texts in a distributed checkpoint.
            assert sorted(found.values()) == sorted(plain.values()), (done, i)
            if not any(isinstance(key, int) for key in keys_of(tree)):
                assert found == plain, (done, i, set(found) ^ set(plain))
                program.run("verify", "--manifest", manifest, at)
            for target in made:
                (shutil.rmtree if os.path.isdir(target) else os.remove)(target)
        done += 1
    os.remove(start)


def keys_of(tree):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from keys_of(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from keys_of(value)


def parts_of_ranks(program, folder):
    """What --for-rank gives each rank is what a distributed checkpoint has."""
    source = os.path.join(DATA, "ckpt", "plain.safetensors")
    whole = {tensor["key"]: tensor["shape"] for tensor in json.loads(
        program.run("ls", "--json", source))["tensors"]}
    rows = {}
    for rank in range(3):
        part = os.path.join(folder, "part%d.safetensors" % rank)
        program.run("reshard", source, part, "--for-rank", "%d/3" % rank)
        for tensor in json.loads(program.run("ls", "--json", part))["tensors"]:
            if tensor["shape"]:
                rows.setdefault(tensor["key"], 0)
                rows[tensor["key"]] += tensor["shape"][0]
    assert rows == {key: shape[0] for key, shape in whole.items()
                    if shape}, rows


COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
static void count(void) {
  static int left = -1;
  if (left < 0) left = atoi(getenv("DIE_AT"));
  if (left > 0 && --left == 0) kill(getpid(), SIGKILL);
}
ssize_t write(int f, const void* b, size_t n) {
  count();
  return ((ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(f, b, n);
}
int fsync(int f) {
  count();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(f);
}
int rename(const char* a, const char* b) {
  count();
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(a, b);
}
int renameat2(int f, const char* a, int g, const char* b, unsigned o) {
  count();
  return ((int (*)(int, const char*, int, const char*, unsigned))dlsym(RTLD_NEXT, "renameat2"))(f, a, g, b, o);
}
"""


def kills(program, folder):
    library = os.path.join(folder, "die.so")
    compiled = subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, "-xc", "-", "-ldl"],
        input=COUNTER.encode(), check=False)
    assert compiled.returncode == 0
    old = os.path.join(DATA, "ckpt", "basic.pt")
    new = os.path.join(DATA, "ckpt", "train_state.pt")
    killed = 0
    for name, options in (("x.pt", []), ("x", ["--to", "dcp"]),
                          ("h", ["--to", "hf", "--drop-values",
                                 "--shard-size", "300B"])):
        room = os.path.join(folder, "kills")
        os.mkdir(room)
        target = os.path.join(room, name)
        before = {key: value for key, value in program.digests(old).items()}
        after = None
        for at in range(1, 200):
            if os.path.isdir(target):
                shutil.rmtree(target)
            program.run("convert", old, target, *options, "--force")
            done = subprocess.run(
                [program.path, "ckpt", "convert", new, target, *options,
                 "--force"], check=False, stdout=subprocess.DEVNULL,
                env=dict(os.environ, LD_PRELOAD=library, DIE_AT=str(at),
                         ASAN_OPTIONS="verify_asan_link_order=0"))
            if done.returncode != -signal.SIGKILL:
                assert done.returncode == 0, done.returncode
                break
            killed += 1
            found = program.digests(target)
            if found != before:
                program.run("verify", target)
                after = after or found
                assert found == after, (name, at)
                assert len(found) == len(program.digests(new))
        else:
            raise AssertionError("it never came to an end")
        shutil.rmtree(room)
    assert killed > 20, killed
    return killed


def salvages(program, folder):
    source = os.path.join(DATA, "ckpt_more", "whole.pt")
    contents = read(source)
    wanted = program.digests(source)
    cut = os.path.join(folder, "cut.pt")
    saved = os.path.join(folder, "saved.pt")
    most = 0
    for end in range(1024, len(contents), 997):
        with open(cut, "wb") as file:
            file.write(contents[:end])
        done = subprocess.run(
            [program.path, "ckpt", "salvage", cut, saved, "--force", "--json"],
            check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        listed = json.loads(subprocess.run(
            [program.path, "ckpt", "ls", "--json", cut], check=False,
            stdout=subprocess.PIPE).stdout or "{}").get("tensors", [])
        whole = {tensor["key"] for tensor in listed if "problem" not in tensor}
        if not listed:  # not even the pickle is there
            assert done.returncode == 2, (end, done.stderr)
            continue
        answer = json.loads(done.stdout)
        assert done.returncode == 1, (end, done.returncode)
        assert {item["key"] for item in answer["lost"]} == (
            set(wanted) - whole), end
        if whole:
            found = program.digests(saved)
            assert found == {key: wanted[key] for key in whole}, end
        most = max(most, len(whole))
    assert most == len(wanted) or most == len(wanted) - 1, most
    # A record that does not match its CRC is lost, the others are not.
    place = contents.index(b"PK\7\10", 4096) - 8
    with open(cut, "wb") as file:
        file.write(contents[:place] + bytes([contents[place] ^ 1])
                   + contents[place + 1:])
    program.run("convert", cut, saved, "--force", expect=2)
    text = program.run("salvage", cut, saved, "--force", expect=1)
    assert "CRC mismatch" in text, text
    assert len(program.digests(saved)) == len(wanted) - 1


def deflated_salvages(program, folder):
    """An archive that another tool packed and deflated, cut anywhere: every
    storage that is whole is saved."""
    source = os.path.join(folder, "stored.pt")
    packed = os.path.join(folder, "deflated.pt")
    draw = random.Random(5)
    names = ["w%d" % i for i in range(6)]
    torch_maker.save(source, {name: torch_maker.tensor(
        "float32", [40], [draw.random() for _ in range(40)]) for name in names})
    with zipfile.ZipFile(source) as old:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info.filename))
    streamed = os.path.join(folder, "streamed.pt")
    with zipfile.ZipFile(source) as old, open(streamed, "wb") as raw:
        # Sizes behind the records, as for a file that cannot seek.
        pipe = io.RawIOBase()
        pipe.writable = lambda: True
        pipe.write = raw.write
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info.filename))
    for path in (packed, streamed):
        wanted = program.digests(path)
        contents = read(path)
        with zipfile.ZipFile(path) as archive:
            ends = {}
            for info in archive.infolist():
                header = info.header_offset
                length = struct.unpack_from("<HH", contents, header + 26)
                ends[info.filename.split("/", 1)[1]] = (
                    header + 30 + sum(length) + info.compress_size)
        cut = os.path.join(folder, "cut_deflated.pt")
        saved = os.path.join(folder, "saved_deflated.pt")
        for end in range(ends["data.pkl"], len(contents), 83):
            with open(cut, "wb") as file:
                file.write(contents[:end])
            whole = {name for i, name in enumerate(names)
                     if ends["data/%d" % i] <= end}
            subprocess.run([program.path, "ckpt", "salvage", cut, saved,
                            "--force"], check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            found = program.digests(saved) if os.path.exists(saved) else {}
            assert found == {name: wanted[name] for name in whole}, (path, end)


def loads(folder, program):
    """Debian's torch reads what we wrote."""
    script = """
import sys, torch
loaded = torch.load(sys.argv[1])
again = torch.load(sys.argv[2])
def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b) and type(a) is type(b)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(
            same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(
            map(same, a, b))
    return a == b
assert same(loaded, again)
"""
    probe = subprocess.run(["/usr/bin/python3", "-c", "import torch"],
                           check=False, stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        print("SKIPPED: torch is not installed, so it loaded nothing")
        return 0
    count = 0
    for name in ("ckpt/train_state.pt", "ckpt_more/channels_last.pt", "ckpt/legacy.pt",
                 "ckpt/legacy_list.pt", "ckpt_more/tied.pt"):
        source = os.path.join(DATA, name)
        middle = os.path.join(folder, "middle.pt")
        # --keys makes the tree anew instead of keeping the pickle.
        program.run("convert", source, middle, "--keys", "*", "--force")
        done = subprocess.run(["/usr/bin/python3", "-c", script, source,
                               middle], check=False, stderr=subprocess.PIPE)
        assert done.returncode == 0, (name, done.stderr.decode())
        count += 1
    return count


def rounding(folder, program):
    """--dtype rounds as torch does."""
    script = """
import sys, torch
a = torch.load(sys.argv[1])['x']
for name in ('float16', 'bfloat16', 'float32', 'float64'):
    b = torch.load(sys.argv[2] + name + '.pt')['x']
    want = a.to(getattr(torch, name))
    assert b.dtype == want.dtype
    same = (b == want) | (b.isnan() & want.isnan())
    assert same.all(), (name, a[~same][:5], b[~same][:5], want[~same][:5])
    assert torch.equal(b.signbit()[~b.isnan()], want.signbit()[~b.isnan()])
"""
    probe = subprocess.run(["/usr/bin/python3", "-c", "import torch"],
                           check=False, stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        print("SKIPPED: torch is not installed, so it rounded nothing")
        return
    draw = random.Random(7)
    for code, dtype in (("f", "F32"), ("d", "F64")):
        values = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 65504.0,
                  65519.9, 65520.0, 1e30, 3.3e38, 5.96e-8, 2.98e-8, 2.99e-8,
                  1e-45, 6.1e-5, 1.00390625, 1.01171875, 2049.0, 2051.0]
        values += [draw.uniform(-1, 1) * 10.0 ** draw.uniform(-44, 38)
                   for _ in range(20000)]
        data = struct.pack("<%d%s" % (len(values), code), *values)
        text = json.dumps({"x": {"dtype": dtype, "shape": [len(values)],
                                 "data_offsets": [0, len(data)]}}).encode()
        start = os.path.join(folder, "x.safetensors")
        with open(start, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        prefix = os.path.join(folder, "as_")
        for name in ("float16", "bfloat16", "float32", "float64"):
            program.run("convert", start, prefix + name + ".pt", "--dtype",
                        name, "--force")
        program.run("convert", start, os.path.join(folder, "x.pt"), "--force")
        done = subprocess.run(["/usr/bin/python3", "-c", script,
                               os.path.join(folder, "x.pt"), prefix],
                              check=False, stderr=subprocess.PIPE)
        assert done.returncode == 0, (dtype, done.stderr.decode())


def main():
    program = Program(os.path.abspath(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        print(same_bytes(program, folder), "archives are the same bytes")
        round_trips(program, folder, 8)
        random_trees(program, folder, 12)
        parts_of_ranks(program, folder)
        print(kills(program, folder), "killed writers left old or new")
        salvages(program, folder)
        deflated_salvages(program, folder)
        print(loads(folder, program), "archives were loaded by torch")
        rounding(folder, program)


if __name__ == "__main__":
    main()
