#!/usr/bin/python3
"""Runs `postflight pickle` on hostile files of up to a megabyte.

    hostile_test.py POSTFLIGHT [--sanitized] [--report] [NAME...]

Each file is shown in every way there is. Each time the program must end by
itself with 0, 1 or 2, say something, keep below 100 MB, and print no control
character in text. With --sanitized memory is not looked at. --report prints
what was slowest and largest.
"""
import argparse
import concurrent.futures
import io
import itertools
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib

MEGABYTE = 1 << 20
MOST_MEMORY = 100 << 20
TIMEOUT_SECONDS = 20
SANITIZED_TIMEOUT_SECONDS = 200
MODES = ([], ['--all'], ['--json'], ['--summary'], ['--disassemble'],
         ['--disassemble', '--json'])
# All but the newline, and C1 in UTF-8.
CONTROL = re.compile(rb'[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]')


# ------------------------------------------------------------ hostile pickles

def repeated(start, body, after=b'', end=b'.', size=MEGABYTE):
    """As many bodies as fit, each with an `after` at the end."""
    count = (size - len(start) - len(end)) // len(body + after)
    return start + body * count + after * count + end


def text(data):
    return b'X' + struct.pack('<I', len(data)) + data


def nesting():
    yield 'lists', repeated(b'', b']', b'', b'.')
    yield 'lists_nested', repeated(b']', b']', b'a')
    yield 'tuples_nested', repeated(b')', b'\x85')
    yield 'marks_nested', repeated(b'', b'(', b't')
    yield 'dicts_nested', repeated(b'}', b'}N', b's')[:-1] + b'.'
    yield 'calls_nested', repeated(b'cm\nf\n', b')R')
    yield 'persistent_nested', repeated(b'N', b'Q')
    yield 'states_nested', repeated(b'N', b'N', b'b')
    yield 'states_of_lists', repeated(b']', b']', b'b')
    yield 'states_of_one', repeated(b'cm\nf\n', b'Nb')
    yield 'frozensets_nested', repeated(b'', b'(', b'\x91')
    yield 'objects_nested', repeated(b'', b'(N', b'o')
    yield 'news_nested', repeated(b'cm\nf\n', b')\x81')
    yield 'marks_only', repeated(b'', b'(', end=b'')
    yield 'deep_twice', repeated(b']', b']', b'a', b'q\0h\0\x86.')
    yield 'wide_and_deep', repeated(b'](', b']N\x86', b'', b'e.')
    yield 'many_dicts', repeated(b'](', b'}NNs', b'', b'e.')
    yield 'many_calls', repeated(b'](cm\nf\nq\0', b'h\0)R', b'', b'e.')
    yield 'many_touched', repeated(b'](cm\nf\nq\0', b'h\0Nb', b'', b'e.')


def sharing():
    doubling = b']' + b'q\0h\0\x86' * 100_000 + b'.'
    yield 'billion_laughs_tuples', doubling
    levels = [b'](' + b'K\1' * 10 + b'eq\0']
    for level in range(250):
        levels.append(b'](' + b'h%c' % level * 10 + b'eq%c' % (level + 1))
    yield 'billion_laughs_lists', b''.join(levels) + b'.'
    yield 'dup_tuples', repeated(b']', b'2\x86')
    yield 'all_shared', repeated(b'(]q\0', b'h\0', b'', b'l.')
    anchors = [b'(']
    for i in range(80_000):
        anchors.append(b']r' + struct.pack('<I', i))
    for i in range(80_000):
        anchors.append(b'j' + struct.pack('<I', i))
    yield 'many_anchors', b''.join(anchors) + b'l.'
    anchors[1 + 80_000:] = reversed(anchors[1 + 80_000:])
    yield 'many_anchors_reversed', b''.join(anchors) + b'l.'
    long = text(b'x' * 500_000)
    yield 'long_text_shared', repeated(b'(' + long + b'q\0', b'h\0', b'', b'l.')
    yield 'long_key_shared', repeated(
        b'(' + long + b'q\0', b'h\0N', b'', b'd.')
    yield 'long_keys_of_dicts', repeated(
        b'(' + long + b'q\0', b'}h\0Ns', b'', b'l.')
    yield 'long_bytes_shared', repeated(
        b'(B' + long[1:] + b'q\0', b'h\0', b'', b'l.')
    yield 'long_legacy_shared', repeated(
        b'(T' + long[1:] + b'q\0', b'h\0', b'', b'l.')
    yield 'middling_text_shared', repeated(
        b'(' + text(b'x' * 256) + b'q\0', b'h\0', b'', b'l.')
    yield 'middling_escapes_shared', repeated(
        b'(' + text(b'\xff' * 256) + b'q\0', b'h\0', b'', b'l.')
    yield 'middling_keys_shared', repeated(
        b'(' + text(b'\x1b' * 256) + b'q\0', b'}h\0Ns', b'', b'l.')
    yield 'long_number_shared', repeated(
        b'(\x8b' + struct.pack('<I', 400_000) + b'7' * 400_000 + b'q\0',
        b'h\0', b'', b'l.')
    yield 'middling_number_shared', repeated(
        b'(\x8b' + struct.pack('<I', 256) + b'7' * 256 + b'q\0',
        b'h\0', b'', b'l.')
    yield 'many_numbers', repeated(
        b'(', b'\x8b' + struct.pack('<I', 1700) + b'7' * 1700, b'', b'l.')
    name = b'x' * 250_000
    yield 'long_global_shared', repeated(
        b'(c' + name + b'\n' + name + b'\nq\0', b'h\0', b'', b'l.')
    yield 'long_global_called', repeated(
        b'(c' + name + b'\n' + name + b'\nq\0', b'h\0)R', b'', b'l.')
    yield 'long_names_on_stack', repeated(
        b'(' + text(name) + b'q\0', b'h\0h\0\x93', b'', b'l.')
    yield 'long_names_called', repeated(
        b'(' + text(name) + b'q\0', b'h\0h\0\x93)R', b'', b'l.')
    yield 'long_names_dropped', repeated(
        text(name) + b'q\0', b'h\0h\0\x930', b'', b'.')
    yield 'middling_names_on_stack', repeated(
        b'(' + text(b'\x1b' * 128) + b'q\0', b'h\0h\0\x93', b'', b'l.')
    yield 'middling_names_called', repeated(
        b'(' + text(b'\x1b' * 128) + b'q\0', b'h\0h\0\x93)R', b'', b'l.')
    yield 'long_name_pairs', repeated(
        b'(' + text(name) + b'q\0' + text(name) + b'q\1',
        b'h\0h\1\x93h\1h\0\x93', b'', b'l.')
    yield 'long_persistent_id', repeated(
        b'(' + long + b'q\0', b'h\0Q', b'', b'l.')
    yield 'long_state_shared', repeated(
        b'(cm\nf\n' + long + b'q\0', b'2h\0b', b'', b'l.')


def counts():
    yield 'memo_far', b']r\xff\xff\xff\xffj\xff\xff\xff\xff.'
    yield 'memo_text_far', b']p18446744073709551615\n.'
    yield 'memo_many_far', b'N' + b''.join(
        b'r' + struct.pack('<I', i * 20011 % 2**32)
        for i in range(200_000)) + b'.'
    # All in one bucket of a hash table with this many.
    yield 'memo_one_bucket', b'N' + b''.join(
        b'r' + struct.pack('<I', (i * 85229) % 2**32)
        for i in range(50_000)) + b'.'
    yield 'long4_2gb', b'\x8b\xff\xff\xff\x7f' + b'x' * 100 + b'.'
    yield 'long4_negative', b'\x8b\xff\xff\xff\xff.'
    yield 'long4_large', b'\x8b' + struct.pack('<I', MEGABYTE) + (
        b'\x7f' * MEGABYTE) + b'.'
    yield 'unicode8_huge', b'\x8d' + b'\xff' * 8 + b'.'
    yield 'frame_huge', b'\x80\4\x95' + b'\xff' * 8 + b'N.'
    yield 'frames', repeated(b'\x80\4', b'\x95' + b'\0' * 8, b'', b'N.')
    yield 'int_text_huge', b'I' + b'7' * MEGABYTE + b'\n.'
    yield 'long_text_huge', b'L' + b'7' * MEGABYTE + b'L\n.'
    yield 'long_hex_huge', b'L0x' + b'7' * MEGABYTE + b'L\n.'
    yield 'long_texts', repeated(b'(', b'L' + b'7' * 4300 + b'L\n', b'', b'l.')
    yield 'int_texts', repeated(b'(', b'I' + b'7' * 4300 + b'\n', b'', b'l.')
    yield 'int_zeros', b'I' + b'0' * MEGABYTE + b'\n.'
    yield 'int_spaces', b'I' + b' ' * MEGABYTE + b'7\n.'
    yield 'float_text_huge', b'F' + b'7' * MEGABYTE + b'\n.'
    yield 'float_text_tiny', b'F0.' + b'0' * MEGABYTE + b'7\n.'
    yield 'float_exponent', b'F1e' + b'9' * MEGABYTE + b'\n.'
    yield 'float_texts', repeated(b'(', b'F0.' + b'3' * 800 + b'e-300\n', b'',
                                  b'l.')
    yield 'put_text_huge', b'Np' + b'7' * MEGABYTE + b'\n.'
    yield 'get_text_zeros', b'Np0\ng' + b'0' * MEGABYTE + b'\n.'
    yield 'string_text_huge', b"S'" + b'\\x41' * (MEGABYTE // 4) + b"'\n."
    yield 'unicode_text_huge', b'V' + b'\\u20ac' * (MEGABYTE // 6) + b'\n.'
    yield 'global_huge', b'c' + b'm' * 500_000 + b'\n' + b'n' * 500_000 + b'\n.'
    yield 'line_without_end', b'c' + b'm' * MEGABYTE
    yield 'lines_without_end', repeated(b'', b'I1\n', b'', b'Ix')
    yield 'extensions', repeated(b'(', b'\x82\1', b'', b'l.')
    yield 'buffers', repeated(b'(', b'\x97\x98', b'', b'l.')
    yield 'empty_appends', repeated(b']', b'(e')
    yield 'pops', repeated(b'N', b'(0')
    yield 'odd_items', b'}(N' * 300_000 + b'u.'
    yield 'globals_all_different', b'(' + b''.join(
        b'cm%d\nf\n' % i for i in range(90_000)) + b'l.'
    yield 'calls_all_different', b'(' + b''.join(
        b'cm%d\nf\n)R' % i for i in range(75_000)) + b'l.'
    yield 'insts_all_different', b'(' + b''.join(
        b'(im%d\nf\n' % i for i in range(80_000)) + b'l.'


def texts():
    for name, data in (('broken_utf8', b'\xff\xc0\x80\xed\xa0\x80\xf4\x90'),
                       ('escapes', b'\x1b[31m\x1b]0;title\x07\x9b31m'),
                       ('controls', bytes(range(32)) + b'\x7f'),
                       ('c1', ''.join(map(chr, range(0x80, 0xa0))).encode()),
                       ('overrides', '\u202e\u2066\u200f\ufeff'.encode()),
                       ('newlines', b'\n\r\v\f\x85'),
                       ('combining', 'e\u0301'.encode() * 50)):
        one = (data * 3)[:250]
        blob = text(one)
        line = one.replace(b'\n', b'')
        yield 'text_' + name, (
            b'(' + blob + b'}' + blob + b'NsU%c' % len(one) + one + b'C%c' %
            len(one) + one + b'\x96' + struct.pack('<Q', len(one)) + one +
            b'c' + line + b'\n' + line + b'\n)RP' + line + b'\n(i' + line +
            b'\n' + line + b'\n' + blob + blob + b'\x93}' + blob + b'Nsb' +
            b'V' + line + b'\nl.')
        yield 'error_' + name, b'I' + line + b'\n.'
        yield 'long_text_' + name, text((data * MEGABYTE)[:MEGABYTE]) + b'.'
        yield 'many_texts_' + name, repeated(b'(', blob, b'', b'l.')
        yield 'many_names_' + name, b'(' + b''.join(
            b'c' + line + b'%d\nf\n' % i for i in range(3000)) + b'l.'
        yield 'many_calls_' + name, b'(' + b''.join(
            b'c' + line + b'%d\nf\n)R' % i for i in range(3000)) + b'l.'
    yield 'bytes_all', repeated(b'(', b'C\xff' + bytes(range(255)), b'', b'l.')


def streams():
    yield 'stream_of_none', b'N.' * 500_000
    yield 'stream_of_lists', b']N\x85a.' * 180_000
    yield 'stream_of_protos', b'\x80\4N.' * 250_000
    yield 'stream_of_calls', b'cm\nf\n)R.' * 100_000
    yield 'stream_of_evil', b"cos\nsystem\n(S'id'\ntR." * 40_000
    yield 'stream_then_garbage', b'N.' * 100_000 + b'\xff' * 500_000
    yield 'stream_then_zeros', b'N.' + b'\0' * MEGABYTE
    yield 'stream_then_broken', b'N.' * 100_000 + b'\x80\4' + b']' * 500_000
    # Each is tried anew to its broken end.
    yield 'stream_of_broken', b'\x80\4N.' + b']' * MEGABYTE
    yield 'legacy_magic', (b'\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.'
                           b'\x80\2M\xe9\3.' + b'N.' * 300_000)
    inside = b'\x80\4N.'
    for _ in range(20):
        inside = (b'\x80\4(ctorch.storage\n_load_from_bytes\nB' +
                  struct.pack('<I', len(inside)) + inside + b'\x85R.')
    yield 'nested_pickles', inside
    many = b'\x80\4N.' * 500
    yield 'nested_shared', repeated(
        b'\x80\4(ctorch.storage\n_load_from_bytes\nq\0B' +
        struct.pack('<I', len(many)) + many + b'\x85q\1', b'h\0h\1R', b'',
        b'l.')
    yield 'nested_none', repeated(
        b'\x80\4(ctorch.storage\n_load_from_bytes\nq\0C\2N.\x85q\1',
        b'h\0h\1R', b'', b'l.')
    bomb = zipped([('a/data.pkl', b'\x80\4N.' + bytes(20 << 20))], True)
    yield 'nested_bombs', repeated(
        b'\x80\4(ctorch.storage\n_load_from_bytes\nq\0B' +
        struct.pack('<I', len(bomb)) + bomb + b'\x85q\1', b'h\0h\1R', b'',
        b'l.')


# --------------------------------------------------------------- hostile zips

def zipped(entries, deflated=False):
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, 'w', method) as archive:
        for name, contents in entries:
            archive.writestr(zipfile.ZipInfo(name), contents, method)
    return out.getvalue()


def raw_entry(name, data, size, method=0, crc=0):
    """A local header with its data, and the directory's entry for it."""
    fields = struct.pack('<5HI2I2H', 20, 0, method, 0, 33, crc, len(data),
                         size & 0xffffffff, len(name), 0)
    local = b'PK\3\4' + fields + name + data

    def central(offset):
        return (b'PK\1\2' + struct.pack('<H', 20) + fields +
                struct.pack('<3H2I', 0, 0, 0, 0, offset) + name)
    return local, central


def archive_of(entries, count=None, size=None, offset=None):
    body, directory = b'', b''
    for local, central in entries:
        directory += central(len(body))
        body += local
    return body + directory + end_record(
        len(entries) if count is None else count,
        len(directory) if size is None else size,
        len(body) if offset is None else offset)


def end_record(count, size, offset, comment=0):
    return b'PK\5\6' + struct.pack('<4H2IH', 0, 0, count & 0xffff,
                                   count & 0xffff, size, offset, comment)


def deflated(front, byte, size):
    """`front` and then `byte` up to `size`, deflated. A flush forgets what came
    before it, so that one piece can be used many times."""
    piece = 64 << 20

    def packed(data):
        pack = zlib.compressobj(6, zlib.DEFLATED, -15)
        return pack.compress(data) + pack.flush(zlib.Z_FULL_FLUSH)
    count, rest = divmod(size - len(front), piece)
    return packed(front + byte * rest) + (
        packed(byte * piece) if count else b'') * count + b'\3\0'


def zips():
    gigabyte = 1 << 30
    for name, front in (('zeros', b''), ('pickle', b'\x80\4N.'),
                        ('text', b'\x8d' + struct.pack('<Q', gigabyte - 10))):
        data = deflated(front, b'\0', gigabyte)
        for record in (b'a/data.pkl', b'a/data/0'):
            yield 'bomb_%s_%s' % (name, record.decode().replace('/', '_')), (
                archive_of([raw_entry(record, data, gigabyte, 8)]))
        if name == 'pickle':
            yield 'bomb_size_lie', archive_of(
                [raw_entry(b'a/data.pkl', data, 100, 8)])
    yield 'bomb_of_lists', archive_of([raw_entry(
        b'a/data.pkl', deflated(b'', b']', 200 << 20), 200 << 20, 8)])
    for name, front, byte in (('lists', b'', b']'), ('marks', b'', b'('),
                              ('nones', b'', b'N'), ('tuples', b')', b'\x85'),
                              ('memo', b'N', b'\x94'), ('zeros', b'N.', b'\0')):
        yield 'bomb_small_' + name, archive_of([raw_entry(
            b'a/data.pkl', deflated(front, byte, 7 << 20), 7 << 20, 8)])
    for name, body in (('stream', b'N.'), ('numbers', b'I' + b'7' * 4300 +
                                           b'\n'), ('calls', b'cm\nf\n)R')):
        data = body * ((7 << 20) // len(body))
        yield 'bomb_small_' + name, zipped([('a/data.pkl', data)], True)
    small = deflated(b'\x80\4N.', b'\0', 30 << 20)
    yield 'bombs_overlapping', overlapping(small, 30 << 20)
    yield 'bombs_many', archive_of(
        [raw_entry(b'a/%d.pkl' % i, small, 30 << 20, 8) for i in range(30)])
    yield 'entries_60000', archive_of(
        [raw_entry(b'', b'', 0)] * 13_000)
    yield 'entries_of_pickles', archive_of(
        [raw_entry(b'%d.pkl' % i, b'N.', 2) for i in range(9_000)])
    yield 'entries_same_name', archive_of(
        [raw_entry(b'a.pkl', b'N.', 2)] * 9_000)
    yield 'entries_overlapping', overlapping(b'N.', 2, 0)
    long = b'x' * 60_000
    yield 'name_long', archive_of([raw_entry(long + b'.pkl', b'N.' * 200_000,
                                             400_000)])
    yield 'name_long_broken', archive_of(
        [raw_entry(long + b'.pkl', b'\xff', 1) for _ in range(8)])
    yield 'names_hostile', archive_of(
        [raw_entry(b'\x1b[31m\x9b\xff\n\r%d.pkl' % i, b'N.' * i, 2 * i)
         for i in range(300)])
    yield 'ends_only', (b'PK\3\4' + b'PK\5\6' * MEGABYTE)[:MEGABYTE]
    yield 'ends_64k', zipped([('a/data.pkl', b'N.')]) + b'PK\5\6' * 16_384
    yield 'ends_empty', b'PK\3\4' + end_record(0, 0, 0) * 40_000
    yield 'archives_many', zipped([('a.pkl', b'N.')]) * 8_000
    yield 'archives_then_cut', zipped([('a.pkl', b'N.')]) * 8_000 + (
        b'PK\3\4' + b'x' * 1000)
    one = raw_entry(b'a.pkl', b'N.', 2)
    for name, lies in (('count', {'count': 0xfffe}), ('size', {'size': 2**31}),
                       ('size_zero', {'size': 0}),
                       ('offset', {'offset': 2**32 - 2}),
                       ('offset_zero', {'offset': 0})):
        yield 'directory_lies_' + name, archive_of([one], **lies)
    yield 'entry_size_lie', archive_of([raw_entry(b'a.pkl', b'N.', 2**31)])
    nested = zipped([('a.pkl', b'N.')])
    for i in range(12):
        nested = zipped([('a%d.zip' % i, nested)], deflated=i % 2 == 1)
    yield 'zip_in_zip', nested
    wide = zipped([('a.pkl', b'N.')])
    for _ in range(5):
        wide = zipped([('%d.zip' % i, wide) for i in range(9)], True)
    yield 'zip_in_zip_wide', wide
    quine = zipped([('a.pkl', b'N.')])
    for _ in range(6):
        quine = zipped([('%d.zip' % i, quine) for i in range(16)], True)
    yield 'zip_in_zip_wider', quine
    yield 'zip_of_streams', zipped(
        [('%d.pkl' % i, b'N.' * 5_000) for i in range(90)])
    yield 'zip_of_looking_like', zipped(
        [('%d' % i, b'\x80\4' + b']' * 1_000) for i in range(800)])
    yield 'salvaged', b'PK\3\4' + struct.pack(
        '<5HI2I2H', 20, 0, 0, 0, 33, 0, 0, 0, 5, 0) + b'a.pkl' + b']' * MEGABYTE


def overlapping(data, size, method=8):
    """One record that thousands of entries point to."""
    local, central = raw_entry(b'a.pkl', data, size, method)
    entry = central(0)
    count = min((MEGABYTE - len(local)) // len(entry), 65_000)
    return local + entry * count + end_record(count, count * len(entry),
                                              len(local))


def others():
    yield 'empty', b''
    yield 'one_byte', b'N'
    yield 'stop', b'.'
    yield 'zeros', bytes(MEGABYTE)
    yield 'ones', b'\xff' * MEGABYTE
    random_bytes = random.Random(1)
    yield 'random', random_bytes.randbytes(MEGABYTE)
    yield 'random_proto', b'\x80\4' + random_bytes.randbytes(MEGABYTE - 2)
    opcodes = b'(.012FIJKLMNPQRSTUVXabcdeghijlopqrstu)}]G' + bytes(
        range(0x80, 0x99)) + b'BC'
    for seed in range(12):
        source = random.Random(seed)
        yield 'random_opcodes_%d' % seed, b'\x80\4' + bytes(
            source.choices(opcodes, k=20_000 if seed % 2 else MEGABYTE // 2))


def all_cases():
    source = random.Random(7)
    for group in (nesting, sharing, counts, texts, streams, zips, others):
        for name, data in group():
            yield name, data
            if len(data) > 1000 and source.random() < 0.15:
                yield name + '_cut', data[:source.randrange(len(data))]


def make(folder, parts):
    for name, data in all_cases():
        assert len(data) <= MEGABYTE + 4096, name
        if not parts or any(part in name for part in parts):
            (pathlib.Path(folder) / name).write_bytes(data)


# ----------------------------------------------------------------- the running

class Run:
    """What one run of the program did."""

    def __init__(self, program, mode, path, timeout, keep):
        self.name = ' '.join([path.name] + mode)
        started = time.monotonic()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [program, 'pickle'] + mode + [str(path)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors)
            timer = threading.Timer(timeout, process.kill)
            timer.start()
            self.printed, self.control = 0, None
            tail = b''
            for piece in iter(lambda: process.stdout.read(1 << 20), b''):
                self.printed += len(piece)
                if not keep and self.control is None:
                    found = CONTROL.search(tail + piece)
                    self.control = found and found.group()
                    tail = piece[-1:]
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = status
            errors.seek(0)
            self.errors = errors.read()
        self.seconds = time.monotonic() - started
        self.worked = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.exit = os.WEXITSTATUS(status)

    def fault(self, check_memory):
        if self.signal == signal.SIGKILL:
            return 'did not end within the time'
        if self.signal is not None:
            return 'died of signal %d: %s' % (self.signal,
                                              self.errors[:300].decode(
                                                  errors='replace'))
        if self.exit not in (0, 1, 2):
            return 'exit %d: %s' % (self.exit, self.errors[-600:].decode(
                errors='replace'))
        if self.exit == 2 and not self.errors and not self.printed:
            return 'said nothing'
        if self.control is not None or CONTROL.search(self.errors):
            return 'printed a control character'
        if check_memory and self.memory > MOST_MEMORY:
            return 'took %d MB' % (self.memory >> 20)
        return None


def table(runs):
    for run in runs:
        print('%6.2f s %5d MB %6d MB printed  %s' % (
            run.worked, run.memory >> 20, run.printed >> 20, run.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('names', nargs='*', help='parts of names of cases')
    parser.add_argument('--sanitized', action='store_true')
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--make', help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.make:
        make(options.make, options.names)
        return 0
    timeout = (SANITIZED_TIMEOUT_SECONDS if options.sanitized
               else TIMEOUT_SECONDS)
    runs, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        # In another process: Linux counts the memory of a process before exec,
        # too, so the parent has to be small.
        subprocess.run([sys.executable, '-B', __file__, options.program,
                        '--make', folder] + options.names, check=True)
        wanted = [(path, mode) for path in sorted(pathlib.Path(folder).iterdir())
                  for mode in MODES]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for run in pool.map(lambda one: Run(
                    options.program, one[1], one[0], timeout,
                    '--json' in one[1]), wanted):
                runs.append(run)
                fault = run.fault(not options.sanitized)
                if fault:
                    failed.append('%s: %s' % (run.name, fault))
                    print('FAILED', failed[-1], flush=True)
    if options.report:
        table([run for run in sorted(runs, key=lambda run: -run.worked)
               if run.worked > 0.5])
        print()
        table(sorted(runs, key=lambda run: -run.memory)[:30])
    slowest = max(runs, key=lambda run: run.seconds)
    print('%d runs, %d failed; the slowest took %.1f s: %s' % (
        len(runs), len(failed), slowest.seconds, slowest.name))
    return 1 if failed or not runs else 0


if __name__ == '__main__':
    sys.exit(main())
