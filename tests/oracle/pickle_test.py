#!/usr/bin/python3
"""Compares the values that `postflight pickle` reads with those of CPython.

    pickle_test.py POSTFLIGHT

Over every pickle of tests/data, also inside zip archives and items of
distributed checkpoints, and over what make_pickles.py writes under this
interpreter and a sample of what it writes under all others that are found.
Python loads them through inert.py: nothing is imported or called.
"""
import ast
import concurrent.futures
import io
import os
import pathlib
import pickletools
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import inert  # noqa: E402
import notation  # noqa: E402

DATA = HERE.parent / 'data'
MAKE_PICKLES = HERE / 'make_pickles.py'
SEED = 20240229
SAMPLE = 300      # files compared of each other interpreter
DISASSEMBLED = 800
BATCH = 200       # files for one run of the program
LEGACY_MAGIC = 0x1950a86a20f9469cfc6c


# -------------------------------------------------- what Python finds in files

def pickle_streams(data, items=None):
    """The name and bytes of each range of concatenated pickles. `items` are the
    extents of concatenated archives."""
    if not data.startswith(b'PK\3\4'):
        return [('', data)]
    if items and len(items) > 1:
        return [('item %d: %s' % (i, where), stream)
                for i, (at, size) in enumerate(items)
                for where, stream in pickle_streams(data[at:at + size])]
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        # The directory is gone; the first record is at the front.
        name_size, extra = struct.unpack('<2H', data[26:30])
        start = 30 + name_size + extra
        _, size, _ = inert.load(data[start:])
        return [(data[30:30 + name_size].decode(), data[start:start + size])]
    found = []
    for entry in archive.infolist():
        with archive.open(entry) as file:
            file._expected_crc = None  # torch may be told to write none
            contents = file.read()
        if entry.filename.endswith(('.pkl', '.debug_pkl', '.pickle')) or (
                is_one_pickle(contents)):
            found.append((entry.filename, contents))
    return found


def is_one_pickle(data):
    if not re.match(rb'\x80[\0-\5]', data):
        return False
    try:
        return inert.load(data)[1] == len(data)
    except Exception:
        return False


def pickles_in(data, items=None):
    """Each pickle with the name of its place, and those inside pickles."""
    for where, stream in pickle_streams(data, items):
        at = count = 0
        is_legacy = False
        while at < len(stream) and not (is_legacy and count == 5):
            value, size, calls = inert.load(stream[at:])
            is_legacy = is_legacy or (count == 0 and type(value) is int and
                                      value == LEGACY_MAGIC)
            yield where, stream[at:at + size], value
            nested = [call.arguments[0] for call in calls
                      if getattr(call.callable, 'names', None) ==
                      ('torch.storage', '_load_from_bytes')]
            for i, inside in enumerate(nested):
                place = '%snested pickle %d' % (where and where + ': ', i)
                for inner, pickle, inner_value in pickles_in(inside):
                    yield (place + ': ' + inner if inner else place, pickle,
                           inner_value)
            at += size
            count += 1


def items_of_checkpoints():
    """{data file: [(offset, size)]} from the metadata of all checkpoints whose
    items are archives as they are."""
    found = {}
    for folder in ('dcp_plain', 'dcp_fsdp', 'dcp_multi_file', 'dcp_threads',
                   'dcp_no_collectives'):
        for metadata in sorted((DATA / folder).glob('*.metadata')):
            value, _, _ = inert.load(metadata.read_bytes())
            storage = value.states[0]['storage_data']
            for info in storage.values():
                state = info.states[0]
                found.setdefault(DATA / folder / state['relative_path'],
                                 set()).add((state['offset'], state['length']))
    return {path: sorted(items) for path, items in found.items()}


def corpus():
    """[(path, items)] of all files of tests/data that hold pickles."""
    items = items_of_checkpoints()
    found = [(path, None) for pattern in (
        'flight/*/*_trace_rank_*', 'ckpt/**/*.pt', 'ckpt/**/*.bin',
        'ckpt_more/*.pt', 'dcp_*/*.metadata')
        for path in sorted(DATA.glob(pattern))]
    return found + sorted(items.items())


# ------------------------------------------------------------- the comparison

class Report:
    def __init__(self):
        self.compared, self.failed, self.skipped = 0, [], {}

    def skip(self, name, why):
        self.skipped.setdefault(why, []).append(pathlib.Path(name).name)

    def fail(self, name, why):
        self.failed.append('%s: %s' % (name, why))


def run(program, arguments, paths):
    """One line of JSON for each path, in order."""
    for i in range(0, len(paths), BATCH):
        batch = paths[i:i + BATCH]
        result = subprocess.run([program, 'pickle', '--json'] + arguments +
                                [str(path) for path in batch],
                                stdout=subprocess.PIPE)
        lines = result.stdout.splitlines()
        if result.returncode not in (0, 1) or len(lines) != len(batch):
            raise SystemExit('%s gave %d answers for %d files and exit %d' % (
                program, len(lines), len(batch), result.returncode))
        yield from zip(batch, lines)


def compare_values(program, files, report):
    """`files`: [(path, items)]."""
    all_items = dict(files)
    for path, line in run(program, [], [path for path, _ in files]):
        data = path.read_bytes()
        answer = notation.parse(line)
        ours = answer.get('pickles')
        try:
            theirs = list(pickles_in(data, all_items[path]))
        except Exception as error:
            if 'NEWOBJ class argument must be a type, not Node' in str(error):
                report.skip(path, 'the class is what a call would return')
            else:
                report.fail(path, 'Python says %r' % error)
            continue
        places = [(each.get('where'), each.get('size')) for each in ours]
        expected = [(where, len(pickle)) for where, pickle, _ in theirs]
        if places != expected:
            report.fail(path, 'found %s, not %s' % (places, expected))
            continue
        for mine, (where, pickle, value) in zip(ours, theirs):
            name = '%s %s' % (path, where)
            report.compared += 1
            offset = mine.get('offset')
            if offset is not None and (
                    data[offset:offset + len(pickle)] != pickle):
                report.fail(name, 'is not at byte %d' % offset)
            if any(key == 'error' for key, _ in mine):
                report.fail(name, mine.get('error'))
                continue
            try:
                notation.Comparison().run(
                    [value for key, value in mine if key == 'value'][0], value)
            except notation.Different as difference:
                report.fail(name, difference)


def same_argument(ours, argument):
    """Whether text as pickletools would print it is that argument."""
    if argument is None:
        return ours == ''
    if isinstance(argument, float):
        return notation.same_scalar(float(ours), argument)
    if isinstance(argument, bool) or not isinstance(argument, int):
        if isinstance(argument, bytearray):
            ours = ours[len('bytearray('):-1]
        return ast.literal_eval(ours) == argument
    return int(ours, 0) == argument


def compare_disassembly(program, paths, report):
    for path, line in run(program, ['--disassemble'], paths):
        data = path.read_bytes()
        for mine in notation.parse(line).get('pickles'):
            ours = mine.get('instructions')
            try:
                theirs = list(pickletools.genops(data))
            except UnicodeDecodeError:
                report.skip(path, 'pickletools reads names in ASCII only')
                break
            report.compared += 1
            mine_seen = [(each.get('offset'), each.get('name'))
                         for each in ours]
            expected = [(at, op.name) for op, _, at in theirs]
            if mine_seen != expected:
                report.fail(path, 'disassembles otherwise')
                break
            for each, (op, argument, at) in zip(ours, theirs):
                if not same_argument(each.get('argument'), argument):
                    report.fail(path, 'byte %d: %s %s, not %r' % (
                        at, op.name, each.get('argument'), argument))
            last = ours[-1]
            data = data[last.get('offset') + last.get('size'):]


# --------------------------------------------------------------- interpreters

def interpreters():
    """Other CPythons than Debian's, by their names."""
    found, missing = {}, []
    for name in ['python2.7'] + ['python3.%d' % i for i in range(6, 14)]:
        candidates = sorted(pathlib.Path.home().glob(
            '.pyenv/versions/*/bin/' + name))
        on_path = shutil.which(name)
        if on_path:
            candidates.append(pathlib.Path(on_path))
        candidates = [path for path in candidates if runs(path) and
                      path.resolve() != pathlib.Path(
                          sys.executable).resolve()]
        if candidates:
            found[name] = candidates[0]
        elif name != 'python3.%d' % sys.version_info[1]:
            missing.append(name)
    return found, missing


def runs(interpreter):
    return subprocess.run([str(interpreter), '-c', 'pass'],
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def make(interpreter, folder):
    environment = dict(os.environ, PYTHONHASHSEED='0')
    subprocess.run([str(interpreter), '-B', str(MAKE_PICKLES), str(folder),
                    '--seed', str(SEED)],
                   check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment)
    return sorted(path for path in folder.iterdir()
                  if path.suffix == '.pkl')


# ----------------------------------------------------------------------- main

def main():
    program = sys.argv[1]
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(20000)
    report = Report()
    chosen = random.Random(SEED)
    others, missing = interpreters()
    for name in missing:
        print('skipped %s: it is not installed' % name)
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        folder = pathlib.Path(folder)
        made = {name: pool.submit(make, path, folder / name)
                for name, path in [('here', sys.executable)] +
                list(others.items())}

        working = pathlib.Path.cwd()
        before = set(working.iterdir())
        files = corpus()
        compare_values(program, files, report)
        if set(working.iterdir()) != before:
            report.fail('tests/data', 'a pickle made a file')
        print('%4d pickles of tests/data' % report.compared)

        for name, paths in made.items():
            paths = paths.result()
            count = report.compared
            if name != 'here':
                paths = chosen.sample(paths, min(SAMPLE, len(paths)))
            compare_values(program, [(path, None) for path in paths], report)
            print('%4d pickles by %s' % (
                report.compared - count,
                'this interpreter' if name == 'here' else name))

        count = report.compared
        flight = [path for path, _ in files if 'flight' in path.parts]
        paths = chosen.sample(made['here'].result(), DISASSEMBLED)
        compare_disassembly(program, paths + flight[::20], report)
        print('%4d disassemblies' % (report.compared - count))
    for why, names in report.skipped.items():
        print('skipped %d: %s: %s' % (len(names), why, ' '.join(names[:4])))
    for failure in report.failed[:50]:
        print('FAILED', failure)
    print('%d compared, %d failed' % (report.compared, len(report.failed)))
    return 1 if report.failed or report.compared < 5000 else 0


if __name__ == '__main__':
    sys.exit(main())
