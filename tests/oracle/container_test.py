#!/usr/bin/python3
"""No hostile container is SAFE while a reader that people use would run a call.

    container_test.py POSTFLIGHT [--count N] [--seed N] [--keep FOLDER]

Generates files: pickles that call something, wrapped in archives, compression,
tensors' formats and each other, whole and damaged, beside harmless ones. A
child process reads each as Python's readers do (pickle, zipfile, tarfile, gzip,
bz2, lzma, zlib, and what torch.load, numpy.load and joblib do with them), with
stand-ins for everything that a pickle can name, and records calls. A file that
makes a call must not be SAFE, nor be of no known format.
"""
import argparse
import ast
import bz2
import collections
import gzip
import io
import json
import lzma
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib

MAGIC = 0x1950a86a20f9469cfc6c
PROTOCOL = 1001
DEPTH = 5

# ----------------------------------------------------------------- the readers


class Stand:
    """Stands for anything that a pickle names; records being called."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def __call__(self, *arguments, **keywords):
        self.calls.append(self.name)
        return self

    def __setstate__(self, state):
        pass


class Recorder(pickle.Unpickler):
    def __init__(self, file, calls):
        super().__init__(file)
        self.calls = calls

    def find_class(self, module, name):
        if (module, name) == ('collections', 'OrderedDict'):
            return collections.OrderedDict
        return Stand(self.calls, '%s.%s' % (module, name))

    def persistent_load(self, pid):
        return None


QUIET = (pickle.UnpicklingError, ValueError, EOFError, KeyError, IndexError,
         TypeError, AttributeError, ImportError, OverflowError, MemoryError,
         RecursionError, OSError, zlib.error, lzma.LZMAError, struct.error,
         tarfile.TarError, zipfile.BadZipFile, NotImplementedError,
         RuntimeError, SyntaxError, AssertionError, UnicodeError)


def tried(function, *arguments):
    try:
        return function(*arguments)
    except QUIET:
        return None


def load_all(data, calls):
    """One pickle after the other, as a loop around pickle.load does."""
    file = io.BytesIO(data)
    for _ in range(20):
        at = file.tell()
        try:
            Recorder(file, calls).load()
        except QUIET:
            return
        if file.tell() in (at, len(data)):
            return


def read_zip(data, calls, depth):
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            contents = tried(archive.read, info)
            if contents:
                read(contents, calls, depth + 1)


def read_headers(data, calls, depth):
    """From header to header, as readers of streams do."""
    at = 0
    while data[at:at + 4] == b'PK\3\4' and len(data) - at >= 30:
        flags, method = struct.unpack('<HH', data[at + 6:at + 10])
        packed, size, name, extra = struct.unpack('<IIHH', data[at + 18:at + 30])
        begin = at + 30 + name + extra
        body = data[begin:begin + packed]
        if method == 8:
            body = tried(zlib.decompressobj(-15).decompress, data[begin:], 1 << 20)
        if body:
            read(body, calls, depth + 1)
        if flags & 8:
            return
        at = begin + packed


def read_tar(data, calls, depth):
    with tarfile.open(fileobj=io.BytesIO(data), mode='r:') as archive:
        for member in archive:
            if member.isfile():
                contents = archive.extractfile(member).read()
                read(contents, calls, depth + 1)
                if member.name in ('storages', 'tensors'):
                    load_all(contents, calls)


def read_numpy(data, calls):
    major = data[6]
    size, front = ((struct.unpack('<H', data[8:10])[0], 10) if major == 1 else
                   (struct.unpack('<I', data[8:12])[0], 12))
    described = ast.literal_eval(data[front:front + size].decode('latin1'))
    if 'O' in repr(described['descr']) or 'object' in repr(described['descr']):
        load_all(data[front + size:], calls)


def read(data, calls, depth=0):
    """Everything that a reader could do with these bytes."""
    if depth > DEPTH:
        return
    tried(load_all, data, calls)
    tried(read_zip, data, calls, depth)
    tried(read_headers, data, calls, depth)
    tried(read_tar, data, calls, depth)
    if data[:6] == b'\x93NUMPY':
        tried(read_numpy, data, calls)
    for decompress in (gzip.decompress, bz2.decompress, lzma.decompress,
                       zlib.decompress):
        inner = tried(decompress, data)
        if inner:
            read(inner, calls, depth + 1)


# --------------------------------------------------------------- the generator

HOSTILE = [
    b'cos\nsystem\n(Vid\ntR.',
    b"cos\nsystem\n(S'id'\ntR.",
    b"cos\nsystem\n(S'id'\ntR",  # breaks off
    b'\x80\2cposix\nsystem\nq\0X\2\0\0\0idq\1\x85q\2Rq\3.',
    b'\x80\4\x95\x1d\0\0\0\0\0\0\0\x8c\5posix\x94\x8c\6system\x94\x93\x94'
    b'\x8c\2id\x94\x85\x94R\x94.',
    b'(Vid\nios\nsystem\n.',
]
PLAIN = [b'N.', b'\x80\2}q\0.', b'\x80\4K\1.', b'(dp0\n.', b'\x80\2]q\0.',
         b'I1\n.']
NAMES = ['data.pkl', 'a/data.pkl', 'm.bin', 'x', 'a/data/0', 'weights.pt',
         'a/b.PKL', 'readme.txt', 'a/version', 'z.npy', 'model.joblib',
         'p/.data/1.storage', 'a\\b.pkl', 'code/x.py', 'c.json']


def legacy(choose, hostile):
    parts = [pickle.dumps(MAGIC, 2), pickle.dumps(PROTOCOL, 2),
             pickle.dumps({'little_endian': True}, 2), b'\x80\2}q\0.',
             b'\x80\2]q\0.']
    if choose.random() < 0.7:
        parts[choose.choice([2, 3, 3, 4])] = hostile
        return b''.join(parts)
    return b''.join(parts) + hostile


def zipped(choose, body, method=None):
    out = io.BytesIO()
    method = method or choose.choice(
        [zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED,
         zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    entries = [(choose.choice(NAMES), choose.choice(PLAIN))
               for _ in range(choose.randrange(3))]
    entries.insert(choose.randrange(len(entries) + 1),
                   (choose.choice(NAMES), body))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        with zipfile.ZipFile(out, 'w', method) as archive:
            if choose.random() < 0.1:
                archive.comment = choose.choice([b'comment', b'PK\5\6' * 6, body])
            for name, contents in entries:
                archive.writestr(zipfile.ZipInfo(name), contents, method)
    data = bytearray(out.getvalue())
    trick = choose.randrange(14)
    local, central = data.find(b'PK\3\4'), data.find(b'PK\1\2')
    if trick == 0:  # the local name
        data[local + 30] ^= 1
    elif trick == 1:  # encrypted, says one of the two
        data[choose.choice([local + 6, central + 8])] |= 1
    elif trick == 2:  # another method
        data[choose.choice([local + 8, central + 10])] ^= 8
    elif trick == 3:  # a size
        data[choose.choice([local + 18, local + 22, central + 20,
                            central + 24])] ^= 1
    elif trick == 4:  # the CRC
        data[central + 16] ^= 1
    elif trick == 5:  # the number of entries
        end = data.find(b'PK\5\6')
        data[end + 8] = data[end + 10] = max(0, data[end + 8] - 1)
    return bytes(data)


def tarred(choose, body):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=choose.choice(
            [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT,
             tarfile.PAX_FORMAT])) as archive:
        for name, contents in ((choose.choice(
                ['pickle', 'storages', 'tensors', 'a.pkl', 'x']), body),
                ('sys_info', choose.choice(PLAIN))):
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    data = bytearray(out.getvalue())
    if choose.random() < 0.3:  # a pickle in the first member's name
        front = choose.choice(PLAIN)
        data[:len(front)] = front
        data[148:156] = b' ' * 8
        data[148:156] = b'%06o\0 ' % sum(data[:512])
    return bytes(data)


def numpy_file(choose, body):
    descr = choose.choice(["'|O'", "'O'", "'object'", "[('a', '|O')]",
                           "'<f4', 'descr': '|O'", "'|O8'"])
    text = ("{'descr': %s, 'fortran_order': False, 'shape': (1,), }" %
            descr).encode()
    return b'\x93NUMPY\1\0' + struct.pack('<H', len(text)) + text + body


def safetensors(choose, body):
    text = json.dumps({'a': {'dtype': 'U8', 'shape': [4],
                             'data_offsets': [0, 4]}}).encode()
    return struct.pack('<Q', len(text)) + text + b'abcd' + body


def joined(choose, body):
    front = choose.choice(PLAIN)
    kind = choose.randrange(6)
    if kind == 0:
        return front + body
    if kind == 1:
        return front + b'\0' * choose.randrange(4) + body
    if kind == 2:
        return body + front
    if kind == 3:
        return zipped(choose, front) + body
    if kind == 4:
        return front + zipped(choose, body)
    return zipped(choose, front) + zipped(choose, body) + zipped(choose, front)


WRAPS = [zipped, zipped, zipped, zipped, tarred, tarred, numpy_file, joined,
         joined, legacy, safetensors,
         lambda choose, body: gzip.compress(body, mtime=0),
         lambda choose, body: bz2.compress(body),
         lambda choose, body: lzma.compress(body),
         lambda choose, body: lzma.compress(body, lzma.FORMAT_ALONE),
         lambda choose, body: zlib.compress(body)]


def generate(seed):
    choose = random.Random(seed)
    data = choose.choice(HOSTILE if choose.random() < 0.9 else PLAIN)
    for _ in range(choose.choice([0, 1, 1, 1, 2, 2, 3])):
        data = choose.choice(WRAPS)(choose, data)
    if choose.random() < 0.08:
        data = data[:choose.randrange(len(data)) + 1]
    if choose.random() < 0.08:
        at = choose.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + (
            data[at + 1:])
    return data


# ------------------------------------------------------------------ the test

# What must stay SAFE, or the test would be passed by calling all unsafe.
def harmless():
    choose = random.Random(1)
    yield 'plain', b'\x80\2}q\0.'
    yield 'twice', b'N.N.'
    yield 'legacy', legacy(random.Random(3), b'\x80\2}q\0.')
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as archive:
        for name, body in (('a/data.pkl', b'\x80\2}q\0.'), ('a/version', b'3\n'),
                           ('a/data/0', struct.pack('<4f', 1, 2, 3, 4))):
            archive.writestr(zipfile.ZipInfo(name), body)
    yield 'zip', out.getvalue()
    yield 'gzip', gzip.compress(b'\x80\2}q\0.', mtime=0)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as archive:
        info = tarfile.TarInfo('a.pkl')
        info.size = 2
        archive.addfile(info, io.BytesIO(b'N.'))
    yield 'tar', out.getvalue()
    yield 'numpy', numpy_file(choose, b'')[:8] + struct.pack('<H', 54) + (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"[:54] + b'abcd')
    yield 'safetensors', safetensors(choose, b'')


def verdicts(program, paths):
    run = subprocess.run([program, 'pickle', '--summary', '--json'] +
                         [str(path) for path in paths], capture_output=True,
                         check=False, stdin=subprocess.DEVNULL)
    assert run.returncode in (0, 1, 2), (run.returncode, run.stderr[-500:])
    found = {}
    for line in run.stdout.splitlines():
        answer = json.loads(line)
        found[answer['file']] = answer['verdict']['name']
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--count', type=int, default=6000)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--keep')
    options = parser.parse_args()
    batch, wrong, calling, tally = 200, [], 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, data in harmless():
            path = folder / name
            path.write_bytes(data)
            said = verdicts(options.program, [path]).get(str(path))
            if said != 'SAFE':
                wrong.append('%s is %s, not SAFE' % (name, said))
        for begin in range(options.seed, options.seed + options.count, batch):
            files = {}
            for seed in range(begin, min(begin + batch,
                                         options.seed + options.count)):
                path = folder / ('%d' % seed)
                path.write_bytes(generate(seed))
                files[str(path)] = seed
            said = verdicts(options.program, files)
            for path, seed in files.items():
                data = pathlib.Path(path).read_bytes()
                calls = []
                read(data, calls)
                calling += bool(calls)
                verdict = said.get(path)
                tally[verdict, bool(calls)] += 1
                if calls and verdict in ('SAFE', None):
                    wrong.append('seed %d is %s, but calls %s' %
                                 (seed, verdict, calls[0]))
                    if options.keep:
                        (pathlib.Path(options.keep) / str(seed)).write_bytes(data)
                os.unlink(path)
    for line in wrong[:40]:
        print('FAILED', line)
    for (verdict, calls), count in sorted(tally.items(), key=str):
        print('%6d %s%s' % (count, verdict, ', and calls' if calls else ''))
    print('%d files, %d of them with calls, %d wrong' % (
        options.count, calling, len(wrong)))
    return 1 if wrong or calling < options.count // 3 else 0


if __name__ == '__main__':
    sys.exit(main())
