#!/usr/bin/python3
"""Damages folders of checkpoints, several files at once, and looks at them.

    folder_mutation_test.py POSTFLIGHT [--rounds N] [--seed N] [--keep FOLDER]

Sharded, distributed and rank folders are mutated: bytes flipped, files cut,
swapped, joined and emptied, numbers and dtypes in headers changed without
changing their length. `ckpt ls`, `digest`, `verify` and `show` must end with 0,
1 or 2, say something, and be quick.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parent / 'data'
COMMANDS = (['digest'], ['verify'], ['ls', '--all'], ['digest', '--json'])
TIMEOUT_SECONDS = 60
DTYPES = [b'F64', b'F32', b'F16', b'I64', b'I32', b'I16', b'U64', b'U32']


def part(tensors, offsets):
    """A safetensors file of torch's writer for Hugging Face."""
    header, data = {}, b''
    for name, (dtype, shape, contents) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape,
                        'data_offsets': [len(data), len(data) + len(contents)]}
        data += contents
    header['__metadata__'] = {'DCP_SHARDING_INFO': json.dumps(
        {name: {'saved_offsets': start} for name, start in offsets.items()})}
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + data


def parts():
    """Three tensors, each in parts of three files."""
    files = {}
    for number in range(3):
        tensors = {name: ('F32', [2, 3], bytes(range(24))) for name in 'abc'}
        files['%d.safetensors' % number] = part(
            tensors, {name: [2 * number, 0] for name in tensors})
    return files


def folders():
    yield 'parts', parts()
    for name in ('dcp_hf', 'dcp_plain', 'dcp_chain', 'dcp_safetensors',
                 'dcp_no_collectives', 'ckpt_made/shards', 'ckpt/ranks',
                 'ckpt/hf', 'sharded/fsdp', 'sharded/zero2', 'sharded/zero3'):
        yield name, {path.name: path.read_bytes()
                     for path in sorted((DATA / name).iterdir())
                     if path.is_file() and path.name != 'manifest.json'}


def mutate(files, choose):
    """Changes some of the files in place."""
    names = sorted(files)
    for name in choose.sample(names, choose.randint(1, min(3, len(names)))):
        data = bytearray(files[name])
        kind = choose.randrange(9)
        if kind == 0 and data:  # a few bits
            for _ in range(choose.randint(1, 8)):
                data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        elif kind == 1:  # cut
            del data[choose.randrange(len(data) + 1):]
        elif kind == 2:  # what is in another file
            data = bytearray(files[choose.choice(names)])
        elif kind == 3:  # joined with another
            data += files[choose.choice(names)]
        elif kind == 4 and data:  # numbers in the front
            front = bytes(data[:4096])
            found = list(re.finditer(rb'[0-9]', front))
            for one in choose.sample(found, min(len(found), 3)):
                data[one.start()] = choose.choice(b'0123456789')
        elif kind in (5, 6):  # dtypes
            for old in DTYPES:
                at = [one.start() for one in re.finditer(old, bytes(data))]
                if at and choose.random() < 0.8:
                    place = choose.choice(at)
                    data[place:place + 3] = choose.choice(
                        [dtype for dtype in DTYPES if dtype != old])
                    break
        elif kind == 7 and len(data) > 16:  # a word of extremes
            at = choose.randrange(len(data) - 8)
            data[at:at + 8] = choose.choice(
                [b'\xff' * 8, b'\0' * 8, b'\xff' * 7 + b'\x7f', b'\0' * 7 +
                 b'\x80'])
        else:
            data = bytearray()
        files[name] = bytes(data)


def look(program, folder):
    """What is wrong with how the program deals with a folder; or None."""
    for command in COMMANDS:
        run = subprocess.run(
            [program, 'ckpt', command[0], str(folder)] + command[1:],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=TIMEOUT_SECONDS)
        if run.returncode not in (0, 1, 2):
            return '%s: exit %d: %s' % (command, run.returncode,
                                        run.stderr[-600:].decode('utf-8',
                                                                 'replace'))
        if not run.stdout and not run.stderr:
            return '%s: said nothing' % command
    return None


def one_round(program, seed, keep):
    choose = random.Random(seed)
    every = list(folders())
    name, files = every[seed % len(every)]
    mutate(files, choose)
    with tempfile.TemporaryDirectory() as folder:
        for file, contents in files.items():
            (pathlib.Path(folder) / file).write_bytes(contents)
        fault = look(program, folder)
        if fault and keep:
            shutil.copytree(folder, os.path.join(keep, 'seed_%d' % seed))
    return fault and 'seed %d, %s: %s' % (seed, name, fault)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--rounds', type=int, default=900)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--keep')
    options = parser.parse_args()
    failed = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for fault in pool.map(
                lambda seed: one_round(options.program, seed, options.keep),
                range(options.seed, options.seed + options.rounds)):
            if fault:
                failed.append(fault)
                print('FAILED', fault, flush=True)
    print('%d folders, %d failed' % (options.rounds, len(failed)))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
