#!/usr/bin/python3
"""Compares the pickles that our writer writes with those of CPython.

    writer_test.py PICKLE_REWRITE

make_pickles.py writes pickles with this interpreter's pickler in C. Each in
protocol 2 and 4 is read and written again by us: the bytes must be the same.
Then we write it in the other protocol, and Python must load the same value.
"""
import _compat_pickle
import copyreg
import io
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_pickles  # noqa: E402

# Not all that Python wrote is part of the value that it wrote.
OTHER_BYTES = {
    'fast_no_memo.': 'they were written without a memo',
    'cycle_set.proto2.': 'Python makes a set that holds itself twice',
    'cycle_frozenset.proto2.': 'Python makes a set that holds itself twice',
}

# What Python writes as calls in the lower protocol, we do too.
LOWERED = [(4, 2, stem) for stem in (
    'bytes_', 'set_of_', 'frozenset_of_', 'shared_bytes', 'shared_frozenset',
    'new_args_ex')] + [(5, 2, 'bytearray_'), (5, 2, 'shared_bytearray'),
                       (5, 4, 'bytearray_'), (5, 4, 'shared_bytearray')]


class Persistent:
    def __init__(self, id):
        self.id = id


class Unpickler(pickle.Unpickler):
    def persistent_load(self, id):
        return Persistent(id)


def value_of(data):
    """A value as text that two equal values have in common."""
    value = Unpickler(io.BytesIO(data)).load()
    try:
        return pickle.dumps(value, 4)
    except AttributeError:  # Stateful without a state
        return repr((type(value), vars(value)))


def opcodes(data):
    return [(op.name, argument) for op, argument, _ in
            pickletools.genops(data)]


def globals_of(data):
    """The names of a pickle in protocol 2 or 4, from what is on the stack."""
    memo, texts = [], []
    for name, argument in opcodes(data):
        if name == 'GLOBAL':
            yield tuple(argument.split(' ', 1))
        elif name == 'STACK_GLOBAL':
            yield tuple(texts[-2:])
        elif name.endswith('UNICODE'):
            texts.append(argument)
        elif name == 'BINGET' or name == 'LONG_BINGET':
            texts.append(memo[argument] if argument < len(memo) else None)
        if name == 'MEMOIZE':
            memo.append(texts[-1] if texts else None)


def lost_by_reading(path, data):
    """Why our value does not contain everything in the pickle."""
    if path.name.startswith('reduce_state_setter.'):
        return 'POP drops the call that sets the state'
    names = [name for name, _ in opcodes(data)]
    if ('MARK', 'FROZENSET') in zip(names, names[1:]):
        return 'an empty frozenset has no identity'
    return None


def why_other_bytes(path):
    for stem, reason in OTHER_BYTES.items():
        if path.name.startswith(stem):
            return reason
    return None


def why_not_converted(data, protocol):
    for module, name in globals_of(data):
        if protocol == 2 and '.' in name:
            return 'protocol 2 has no names with dots'
        if protocol == 4 and (module in _compat_pickle.IMPORT_MAPPING or
                              (module, name) in _compat_pickle.NAME_MAPPING):
            return 'protocol 4 does not know the names of Python 2'
    return None


class Report:
    def __init__(self):
        self.compared, self.skipped, self.failed = 0, {}, []

    def skip(self, path, reason):
        self.skipped.setdefault(reason, []).append(path.name)

    def check(self, path, what, is_good):
        self.compared += 1
        if not is_good:
            self.failed.append('%s: %s' % (path.name, what))

    def print(self):
        for reason, names in sorted(self.skipped.items()):
            print('skipped %d because %s: %s' % (
                len(names), reason, ' '.join(names[:5]) +
                (' ...' if len(names) > 5 else '')))
        for failure in self.failed:
            print('FAILED', failure)
        print('%d compared, %d failed' % (self.compared, len(self.failed)))


def rewrite(program, paths, protocol, folder):
    """Returns {path: bytes} for the paths written again."""
    folder.mkdir()
    for i in range(0, len(paths), 500):
        subprocess.run([program, '--protocol', str(protocol), '--into',
                        str(folder)] + [str(p) for p in paths[i:i + 500]],
                       check=True)
    return {path: (folder / path.name).read_bytes() for path in paths}


def compare(program, folder, report):
    pickles = {protocol: sorted((folder / 'in').glob(
        '*.proto%d.pkl' % protocol)) for protocol in (2, 4, 5)}
    for protocol, other in ((2, 4), (4, 2)):
        paths = pickles[protocol]
        same = rewrite(program, paths, protocol, folder / ('%d' % protocol))
        turned = rewrite(program, paths, other,
                         folder / ('%d_to_%d' % (protocol, other)))
        for path in paths:
            data = path.read_bytes()
            lost = lost_by_reading(path, data)
            if lost:
                report.skip(path, lost)
                continue
            reason = why_other_bytes(path)
            if reason:
                report.skip(path, reason)
            else:
                report.check(path, 'other bytes', same[path] == data)
            value = value_of(data)
            report.check(path, 'other value', value_of(same[path]) == value)
            reason = why_not_converted(data, other)
            if reason:
                report.skip(path, reason)
            else:
                report.check(path, 'other value in protocol %d' % other,
                             value_of(turned[path]) == value)
    for high, low, stem in LOWERED:
        paths = [p for p in pickles[high] if p.name.startswith(stem)]
        assert paths, stem
        lowered = rewrite(program, paths, low, folder /
                          ('%s_%d_to_%d' % (stem, high, low)))
        for path in paths:
            expected = path.with_name(path.name.replace(
                '.proto%d.' % high, '.proto%d.' % low)).read_bytes()
            report.check(path, 'other bytes in protocol %d' % low,
                         lowered[path] == expected)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, '-B', make_pickles.__file__,
                        str(folder / 'in')], check=True,
                       stderr=subprocess.DEVNULL)
        for code, name in ((240, 'Extension1'), (300, 'Extension2'),
                           (70000, 'Extension4')):
            copyreg.add_extension('make_pickles', name, code)
        report = Report()
        compare(program, folder, report)
    report.print()
    return 1 if report.failed or report.compared < 2000 else 0


if __name__ == '__main__':
    sys.exit(main())
