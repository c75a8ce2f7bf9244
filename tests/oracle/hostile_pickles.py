#!/usr/bin/python3
"""Compares the verdict SAFE with what loading a pickle really does.

    hostile_pickles.py POSTFLIGHT [--count N] [--seed N] [--keep FOLDER]

Makes random pickles from a grammar of protocols, frames, text forms, memo and
stack tricks, and gadgets; everything that `postflight pickle` calls SAFE is
loaded in sandboxed children (unpickling_child.py) by the unpicklers in C and in
Python of every CPython that is found. A pickle must not be SAFE if one of them
looks up a name that was not reported, calls what is not plain, or changes a
class or function.
"""
import _compat_pickle as compat
import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
CHILD = HERE / 'unpickling_child.py'
BATCH = 250

PAYLOADS = [b'cos\nsystem\n(Vid\ntR', b'cnobody.here\nrun\n)R',
            b'cbuiltins\neval\n(V1\ntR', b'\x8c\x02os\x8c\x06system\x93)R']

PLAIN = [
    ('builtins', 'int'), ('builtins', 'list'), ('builtins', 'dict'),
    ('builtins', 'str'), ('builtins', 'set'), ('builtins', 'tuple'),
    ('builtins', 'bytearray'), ('builtins', 'complex'), ('builtins', 'sum'),
    ('builtins', 'type'), ('builtins', 'iter'), ('builtins', 'object'),
    ('builtins', 'ValueError'), ('builtins', 'slice'), ('builtins', 'zip'),
    ('__builtin__', 'unicode'), ('__builtin__', 'list'),
    ('__builtin__', 'xrange'), ('exceptions', 'KeyError'),
    ('copy_reg', '_reconstructor'), ('copyreg', '_reconstructor'),
    ('copyreg', '__newobj__'), ('collections', 'OrderedDict'),
    ('collections', 'Counter'), ('collections', 'defaultdict'),
    ('collections', 'deque'), ('collections', 'UserDict'),
    ('datetime', 'timedelta'), ('datetime', 'date'),
    ('decimal', 'Decimal'), ('fractions', 'Fraction'), ('uuid', 'UUID'),
    ('types', 'SimpleNamespace'), ('types', 'GenericAlias'),
    ('argparse', 'Namespace'), ('pathlib', 'PurePosixPath'),
    ('pathlib', 'PosixPath'), ('io', 'BytesIO'), ('io', 'StringIO'),
    ('array', 'array'), ('random', 'Random'), ('logging', 'getLogger'),
    ('_codecs', 'encode'), ('re', '_compile'), ('typing', 'Optional'),
    ('operator', 'itemgetter'), ('operator', 'attrgetter'),
    ('operator', 'or_'), ('operator', 'getitem'), ('operator', 'add'),
    ('functools', 'partial'), ('functools', 'reduce'), ('builtins', 'map'),
    ('builtins', 'filter'), ('itertools', 'starmap'), ('itertools', 'chain'),
    ('itertools', 'islice'), ('itertools', 'accumulate'),
    ('builtins', 'getattr'), ('__builtin__', 'getattr'),
    ('__builtin__', 'reduce'), ('zoneinfo', 'ZoneInfo'),
    ('numpy', 'dtype'), ('numpy.core.multiarray', '_reconstruct'),
    ('numpy.random._pickle', '__generator_ctor'),
    ('numpy.random._pickle', '__bit_generator_ctor'),
    ('torch', 'FloatStorage'), ('torch._utils', '_rebuild_tensor_v2'),
    ('torch._tensor', '_rebuild_from_type_v2'),
    ('torch.storage', '_load_from_bytes'),
]
DANGEROUS = [
    ('os', 'system'), ('posix', 'system'), ('builtins', 'eval'),
    ('builtins', 'exec'), ('nobody.here', 'run'), ('nobody', 'Class'),
    ('commands', 'getoutput'), ('subprocess', 'getoutput'),
    ('builtins', 'eval.__call__'), ('builtins', 'list.__class__'),
    ('__torch__x', 'f'), ('numpy.dtypes', 'XDType'), ('operator', 'call'),
    ('operator', 'methodcaller'), ('functools', 'partialmethod'),
    ('pathlib', 'Path.unlink'), ('pathlib', 'Path.cwd'),
    ('uuid', '_get_command_stdout'), ('collections', 'abc'),
    ('logging', 'os.system'), ('random', '_os.system'), ('re', 'enum'),
    ('uuid', 'os'), ('builtins', 'setattr'), ('builtins', '__import__'),
    ('copyreg', 'add_extension'), ('webbrowser', 'open'),
]

def of_tables():
    """Every name that the tables of src/pickle/names say is plain."""
    found = []
    for table in ('standard_names', 'standard_types'):
        text = (HERE.parent.parent / 'src/pickle/names' /
                (table + '.cc')).read_text()
        for row in re.finditer(r'NameRow\{\s*"([^"]+)",\s*((?:"[^"]*"\s*)+),'
                               r'\s*([^}]*)\}', text):
            module, names, known = row.groups()
            if known.startswith(('kPlain', 'kEnumeration', 'kBare', 'depends',
                                 'does("calls', 'kReduces', '{Trust::kPlain')):
                found += [(module, name) for name in ' '.join(
                    re.findall('"([^"]*)"', names)).split()]
    assert len(found) > 1000, len(found)
    return found


KNOWN = of_tables()
# What leads from a value to its methods, and from there to the rest.
ATTRIBUTES = [
    'unlink', 'rmdir', 'mkdir', 'touch', 'open', 'read_text', 'write_text',
    'load', 'loads', '__globals__', '__init__', 'mro', '__subclasses__',
    '__class__', '__dict__', '__call__', '__self__', '__func__', '__module__',
    'manager', 'root', 'handlers', 'addHandler', 'format', 'im_func', 'expand',
    'func_globals', '__reduce__', '__reduce_ex__', '__getattribute__', 'update',
    '__setstate__', '__loader__', '__spec__', '__builtins__', 'popen', 'numerator',
    'append', 'extend', 'add', 'items', 'keys', '__getitem__', 'cwd', 'home',
    'lower', 'upper', 'fromkeys', 'fromhex', 'register', 'UTC', 'NAME', 'OK']
TEXTS = ['', 'a', 'id', 'os', 'system', 'builtins', 'eval', '__class__',
         'append', 'extend', '__setstate__', 'latin1', 'hex', 'numerator',
         'f4', 'UTC', '__globals__', '_unpickle', 'x' * 300, 'é', '01', '1']


class Maker:
    """One random pickle."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.protocol = self.pick([0, 1, 2, 2, 3, 4, 4, 5])
        self.hostility = self.pick([0, 0, 0.02, 0.1])
        self.dirt = self.pick([0, 0, 0.02, 0.1])
        self.memo = 0
        self.out = []
        self.budget = self.random.randrange(3, 60)

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    def put(self, *pieces):
        self.out += pieces

    def make(self):
        if self.protocol >= 2:
            self.put(b'\x80' + bytes([self.protocol]))
        self.value(0)
        self.put(b'.')
        body = b''.join(self.framed(self.out))
        if self.chance(0.1):
            body += Maker(self.random.random()).make()
        if self.chance(0.05):
            body += self.pick(PAYLOADS)
        if self.chance(self.dirt):
            body = bytearray(body)
            for _ in range(self.pick([1, 1, 2, 5])):
                body[self.random.randrange(len(body))] = (
                    self.random.randrange(256))
            body = bytes(body)
        return body

    def framed(self, pieces):
        """Puts frames around: right ones, or too short, nested, too long."""
        if self.protocol < 4 and not self.chance(self.dirt):
            return pieces
        kind = self.pick(['none', 'one', 'parts', 'wrong'])
        if kind == 'none':
            return pieces
        head, rest = pieces[:1], pieces[1:]
        if kind == 'one':
            return head + [frame(sum(map(len, rest)))] + rest
        made = head
        while rest:
            count = self.random.randrange(1, len(rest) + 1)
            part, rest = rest[:count], rest[count:]
            size = sum(map(len, part))
            if kind == 'wrong' and self.chance(0.5):
                size += self.pick([-5, -3, -2, -1, 1, 2, 20, 1000])
            made += [frame(max(size, 0))] + part
        return made

    # -- values, each an opcode or more that push one

    def value(self, depth):
        self.budget -= 1
        choices = [self.number, self.text]
        if depth < 6 and self.budget > 0:
            choices += [self.container, self.call, self.call, self.built,
                        self.recalled, self.thrown_away, self.known, self.odd,
                        self.composed, self.composed, self.memo_game]
        self.pick(choices)(depth)
        if self.chance(0.2):
            self.memoize()

    def number(self, depth):
        number = self.pick([0, 1, 7, 255, 256, 65536, -1, 1 << 40])
        forms = [b'I%d\n' % number, b'L%dL\n' % number,
                 b'F%d\n' % number, b'N']
        if self.protocol >= 1:
            if 0 <= number < 256:
                forms.append(b'K' + bytes([number]))
            if 0 <= number < 65536:
                forms.append(b'M' + struct.pack('<H', number))
            if number < 1 << 31:
                forms.append(b'J' + struct.pack('<i', number))
            forms.append(b'G' + struct.pack('>d', number))
        if self.protocol >= 2:
            forms += [b'\x88', b'\x89', b'\x8a\2' + b'\1\2']
        if self.chance(self.dirt):
            forms = [b'I010\n', b'I 1\n', b'I01\n', b'I00\n', b'L1_0\n',
                     b'I1\0002\n', b'I0x10\n', b'F1_0\n', b'Finf\n',
                     b'L 5 L\n', b'I\n', b'I+1\n', b'I0o7\n', b'\x8a\0']
        self.put(self.pick(forms))

    def text(self, depth, text=None):
        if text is None:
            text = self.pick(TEXTS)
            if self.chance(0.1):
                self.blob(self.pick(PAYLOADS) + b'.')
                return
        data = text.encode()
        forms = [b'V' + text.encode('raw-unicode-escape') + b'\n',
                 b"S'" + data.replace(b'\xc3', b'').replace(b'\xa9', b'') +
                 b"'\n"]
        if self.protocol >= 1:
            forms.append(b'X' + struct.pack('<I', len(data)) + data)
        if self.protocol >= 4:
            if len(data) < 256:
                forms.append(b'\x8c' + bytes([len(data)]) + data)
            forms.append(b'\x8d' + struct.pack('<Q', len(data)) + data)
        self.put(self.pick(forms))

    def blob(self, data):
        forms = [b'V' + data.replace(b'\\', b'').replace(b'\n', b'\\u000a') +
                 b'\n']
        if self.protocol >= 1:
            forms += [b'U' + bytes([len(data)]) + data,
                      b'T' + struct.pack('<I', len(data)) + data]
            if all(byte < 128 for byte in data):
                forms += [b'X' + struct.pack('<I', len(data)) + data]
        if self.protocol >= 3:
            forms += [b'C' + bytes([len(data)]) + data,
                      b'B' + struct.pack('<I', len(data)) + data]
        if self.protocol >= 5:
            forms += [b'\x96' + struct.pack('<Q', len(data)) + data]
        self.put(self.pick(forms))

    def container(self, depth):
        kind = self.pick('lltdds')
        count = self.random.randrange(4)
        if kind == 'l' and self.protocol >= 1 and self.chance(0.6):
            self.put(b']')
            if self.chance(0.5):
                self.put(b'(')
                self.values(count, depth)
                self.put(b'e')
            else:
                for _ in range(count):
                    self.value(depth + 1)
                    self.put(b'a')
        elif kind == 'd':
            if self.protocol >= 1 and self.chance(0.6):
                self.put(b'}')
                self.pairs(count, depth)
            else:
                self.put(b'(')
                for _ in range(count):
                    self.text(depth)
                    self.value(depth + 1)
                self.put(b'd')
        elif kind == 's' and self.protocol >= 4:
            self.pick([lambda: self.put(b'\x8f(K\1K\2\x90'),
                       lambda: self.put(b'(K\1K\2\x91')])()
        elif kind == 't':
            self.arguments(depth)
        else:
            self.put(b'(')
            self.values(count, depth)
            self.put(b'l')

    def values(self, count, depth):
        for _ in range(count):
            self.value(depth + 1)

    def pairs(self, count, depth):
        if self.chance(0.5):
            self.put(b'(')
            for _ in range(count):
                self.text(depth)
                self.value(depth + 1)
            self.put(b'u')
        else:
            for _ in range(count):
                self.text(depth)
                self.value(depth + 1)
                self.put(b's')

    def arguments(self, depth):
        count = self.random.randrange(4)
        if self.chance(self.dirt):
            self.value(depth + 1)  # no tuple
        elif self.protocol >= 2 and self.chance(0.7) and count:
            self.values(count, depth)
            self.put(bytes([0x84 + count]))
        elif self.protocol >= 1 and count == 0:
            self.put(b')')
        else:
            self.put(b'(')
            self.values(count, depth)
            self.put(b't')

    def name(self):
        if self.chance(self.hostility):
            return self.pick(DANGEROUS)
        return self.pick(PLAIN if self.chance(0.5) else KNOWN)

    def known(self, depth):
        """A global as a value."""
        self.global_(*self.name())

    def global_(self, module, name):
        if self.protocol >= 4 and self.chance(0.6):
            self.text(0, module)
            if self.chance(0.3):
                self.memoize()
            self.text(0, name)
            self.put(b'\x93')
        else:
            self.put(b'c' + module.encode() + b'\n' + name.encode() + b'\n')

    def call(self, depth):
        module, name = self.name()
        if self.chance(0.1):
            self.put(b'(')
            self.values(self.random.randrange(3), depth)
            self.put(b'i' + module.encode() + b'\n' + name.encode() + b'\n')
            return
        if self.chance(0.1) and self.protocol >= 1:
            self.put(b'(')
            self.global_(module, name)
            self.values(self.random.randrange(3), depth)
            self.put(b'o')
            return
        if self.chance(0.05):
            self.call(depth + 1)  # what a call returns is called
        else:
            self.global_(module, name)
        if self.chance(0.25):  # a plausible call
            self.likely_arguments(name, depth)
        else:
            self.arguments(depth)
        ending = self.random.random()
        if ending < 0.8 or self.protocol < 2:
            self.put(b'R')
        elif ending < 0.95 or self.protocol < 4:
            self.put(b'\x81')
        else:
            self.put(b'}')
            self.pairs(self.random.randrange(2), depth)
            self.put(b'\x92')
        if self.chance(0.15):
            self.state(depth)

    # -- gadgets that only do something together

    def composed(self, depth):
        kind = self.pick([
            self.partial, self.getattr_chain, self.filled, self.mapped,
            self.remade, self.fetched, self.state_of_calls, self.called_later])
        kind(depth + 1)

    def begin(self, module, name):
        self.global_(module, name)
        self.put(b'(')

    def end(self):
        self.put(b'tR')

    def builtin(self, name):
        self.begin(self.pick(['builtins', '__builtin__']), name)

    def partial(self, depth):
        self.begin('functools', 'partial')
        self.pick([self.known, self.call, self.recalled])(depth)
        self.values(self.random.randrange(3), depth)
        self.end()
        if self.chance(0.3):  # a state replaces what it calls
            self.put(b'((')
            self.pick([self.known, self.call])(depth)
            self.put(b')(dNtb' if self.chance(0.5) else b't)(dNtb')

    def getattr_chain(self, depth):
        count = self.random.randrange(1, 4)
        for _ in range(count):
            self.builtin('getattr')
        self.pick([self.known, self.call, self.text])(depth)
        for _ in range(count):
            self.text(0, self.pick(ATTRIBUTES))
            self.end()
        if self.chance(0.6):  # and call it
            self.arguments(depth)
            self.put(b'R')

    def filled(self, depth):
        """A container of some class, with items that are calls."""
        module, name = self.pick([
            ('collections', 'deque'), ('collections', 'Counter'),
            ('collections', 'OrderedDict'), ('collections', 'UserList'),
            ('collections', 'UserDict'), ('collections', 'ChainMap'),
            ('array', 'array'), ('http.cookies', 'SimpleCookie'),
            ('configparser', 'ConfigParser'), ('argparse', 'Namespace'),
            ('xml.etree.ElementTree', 'Element'), ('builtins', 'bytearray')])
        self.begin(module, name)
        self.values(self.random.randrange(2), depth)
        self.end()
        self.put(b'(')
        if self.chance(0.5):
            self.values(self.random.randrange(1, 3), depth)
            self.put(b'e')
        else:
            for _ in range(self.random.randrange(1, 3)):
                self.pick([self.text, self.call])(depth)
                self.value(depth)
            self.put(b'u')

    def mapped(self, depth):
        """What calls a function for others: here and now, or when asked."""
        module, name = self.pick([
            ('builtins', 'map'), ('builtins', 'filter'), ('builtins', 'iter'),
            ('itertools', 'starmap'), ('itertools', 'accumulate'),
            ('functools', 'reduce'), ('itertools', 'groupby'),
            ('itertools', 'takewhile'), ('builtins', 'reduce')])
        outer = self.pick(['list', 'tuple', 'sum', 'max', 'dict', 'sorted',
                           'set', 'zip', 'reversed', 'enumerate', 'any'])
        self.builtin(outer)
        self.begin(module, name)
        function = self.pick([self.known, self.partial, self.call,
                              self.getattr_chain])
        if name in ('accumulate', 'groupby'):
            self.container(depth)
            function(depth)
        else:
            function(depth)
            self.pick([self.container, self.call])(depth)
        self.end()
        self.end()

    def remade(self, depth):
        """By copyreg, of classes that are what calls return, too."""
        module = self.pick(['copyreg', 'copy_reg'])
        function = self.pick(['_reconstructor', '__newobj__', '__newobj_ex__'])
        self.begin(module, function)
        self.pick([self.known, self.known, self.call])(depth)
        if function == '_reconstructor':
            self.pick([self.known, lambda _: self.global_('builtins', 'object')])(
                depth)
        self.values(self.random.randrange(3), depth)
        self.end()
        if self.chance(0.5):
            self.state(depth)

    def fetched(self, depth):
        """From a container, by what was put into it."""
        self.begin(self.pick(['operator', '_operator']), 'getitem')
        if self.chance(0.4):
            self.begin('collections', 'defaultdict')
            self.pick([self.known, self.partial])(depth)
            self.end()
        else:
            self.pick([self.container, self.call, self.filled])(depth)
        self.pick([self.number, self.text, self.call])(depth)
        self.end()
        ending = self.random.random()
        if ending < 0.3:
            self.arguments(depth)
            self.put(b'R')
        elif ending < 0.5:
            self.state(depth)

    def state_of_calls(self, depth):
        self.pick([self.call, self.filled])(depth)
        self.begin('collections', self.pick(['OrderedDict', 'Counter']))
        self.put(b'(](')
        self.text(0, self.pick(ATTRIBUTES))
        self.value(depth)
        self.put(b'le' if self.chance(0.9) else b'lee')
        self.put(b'l')
        self.end()
        self.put(b'b' if self.chance(0.5) else b'N\x86b'
                 if self.protocol >= 2 else b'b')

    def called_later(self, depth):
        """attrgetter and itemgetter, handed to what calls them."""
        self.begin('functools', 'reduce') if self.chance(0.3) else (
            self.builtin('map'))
        self.begin('operator', self.pick(['attrgetter', 'itemgetter']))
        self.text(0, self.pick(ATTRIBUTES))
        self.end()
        self.put(b'(')
        self.pick([self.call, self.known])(depth)
        self.put(b'l')
        self.end()

    def memo_game(self, depth):
        """An entry that is overwritten, and what is recalled is called."""
        key = self.random.randrange(200, 206)
        put = self.pick([b'p%d\n' % key, b'q' + bytes([key])])
        get = self.pick([b'g%d\n' % key, b'h' + bytes([key])])
        self.known(depth + 1)
        self.put(put, b'0')
        if self.chance(0.6):
            self.pick([self.known, self.call])(depth + 1)
            self.put(put, b'0')
        self.put(get)
        if self.chance(0.7):
            self.arguments(depth + 1)
            self.put(b'R')

    def likely_arguments(self, name, depth):
        self.put(b'(')
        if name in ('map', 'filter', 'reduce', 'starmap', 'partial',
                    '_rebuild_from_type_v2'):
            self.known(depth)
            self.container(depth + 1)
            if name == '_rebuild_from_type_v2':
                self.arguments(depth)
        elif name == '__generator_ctor':
            self.text(depth)
            self.known(depth)
        elif name == '_load_from_bytes':
            self.blob(self.pick(PAYLOADS + [b'N', b'K\1', b'(l']) + b'.')
        elif name in ('getattr', 'sum', 'type', 'getitem'):
            self.known(depth)
            self.text(depth)
        elif name == 'attrgetter':
            self.text(depth)
        elif name == '_reconstructor':
            self.known(depth)
            self.global_('builtins', 'object')
            self.put(b'N')
        else:
            self.values(1, depth)
        self.put(b't')

    def state(self, depth):
        kind = self.random.random()
        if kind < 0.4:
            self.put(b'(d')
            self.pairs(self.random.randrange(3), depth)
        elif kind < 0.8:
            self.put(b'(N(d')
            self.pairs(self.random.randrange(3), depth)
            self.put(b't')
        else:
            self.value(depth + 1)
        self.put(b'b')

    def built(self, depth):
        """State or items for whatever it is."""
        self.pick([self.known, self.call, self.recalled])(depth + 1)
        kind = self.random.random()
        if kind < 0.6:
            self.state(depth)
        elif kind < 0.8:
            self.put(b'(')
            self.values(self.random.randrange(3), depth)
            self.put(b'e')
        else:
            self.text(depth)
            self.value(depth + 1)
            self.put(b's')

    def memoize(self):
        if self.protocol >= 4 and self.chance(0.6):
            self.put(b'\x94')
            self.memo += 1
            return
        key = self.memo if self.chance(0.9) else self.random.randrange(12)
        self.put(self.pick([b'p%d\n' % key, b'q' + bytes([key % 256]),
                            b'r' + struct.pack('<I', key)]))
        self.memo += 1

    def recalled(self, depth):
        if not self.memo:
            return self.number(depth)
        key = self.random.randrange(self.memo)
        if self.chance(self.dirt):
            self.put(self.pick([b'g0%d\n' % key, b'g %d\n' % key,
                                b'g1_0\n']))
            return
        self.put(self.pick([b'g%d\n' % key, b'h' + bytes([key % 256]),
                            b'j' + struct.pack('<I', key)]))

    def thrown_away(self, depth):
        kind = self.pick('0012m')
        if kind == '0':
            self.value(depth + 1)
            self.put(b'0')
        elif kind == '1':
            self.put(b'(')
            self.values(self.random.randrange(3), depth)
            self.put(b'1')
        elif kind == 'm':
            self.put(b'(0')
        self.value(depth + 1)
        if kind == '2':
            self.put(b'2')
            self.put(self.pick([b'0', b'a', b'\x86' if self.protocol >= 2
                                else b'0']))

    def odd(self, depth):
        if not self.chance(max(self.dirt, 0.05)):
            return self.number(depth)
        self.put(self.pick([
            b'\x82\x01', b'P1\n', b'K\1Q', b'\x97', b'C\1a\x98',
            b'\x80\4N', b'\x80\2N', b'N2', b'((t', b'(lp-1\n',
            b'Nr\xff\xff\xff\x7f', b'Np99999999\n', frame(0) + b'N',
            frame(1) + b'N', frame(3) + b'X\1\0\0\0aK\1']))


def frame(size):
    return b'\x95' + struct.pack('<Q', size)


def interpreters():
    found = [pathlib.Path(sys.executable)]
    names = ['python2.7'] + ['python3.%d' % i for i in range(6, 15)]
    for name in names:
        found += sorted(pathlib.Path.home().glob(
            '.pyenv/versions/*/bin/' + name))
    return [path for path in found if subprocess.run(
        [str(path), '-c', 'pass'], stderr=subprocess.DEVNULL).returncode == 0]


class Child:
    def __init__(self, interpreter):
        self.interpreter = interpreter
        self.process = None

    def start(self):
        environment = {'PYTHONHASHSEED': '0', 'PYTHONDONTWRITEBYTECODE': '1'}
        self.process = subprocess.Popen(
            [str(self.interpreter), '-s', '-E', '-B', str(CHILD)] +
            sorted({module for module, _ in KNOWN}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment)
        self.version = '.'.join(map(str, json.loads(
            self.process.stdout.readline())))

    def look(self, data):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(struct.pack('<Q', len(data)) + data)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = b''
        if not line:  # a crash of the interpreter, by its signal
            status = self.process.wait()
            self.process = None
            return [['?', [], 'exit %d' % status]]
        answers = json.loads(line)
        if any(event[0] == 'changed' for _, events, _ in answers
               for event in events):
            self.close()
        return answers

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def verdicts(program, paths):
    """[(path, verdict, {(module, name)})]"""
    result = subprocess.run(
        [program, 'pickle', '--json', '--summary'] + [str(p) for p in paths],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if result.returncode not in (0, 1, 2):
        raise SystemExit('the program exits with %d' % result.returncode)
    found = []
    for line in result.stdout.splitlines():
        answer = json.loads(line)
        names = {(use['module'], use['name']) for each in answer['pickles']
                 for use in each['globals']}
        found.append((answer['file'], answer['verdict']['name'], names))
    return found


def complaints(answers, names):
    """What a pickle did that was not said."""
    modules = {module for module, _ in names}
    modules |= {compat.IMPORT_MAPPING.get(module) for module in modules}
    for reader, events, _ in answers:
        for event in events:
            if event[0] == 'name' and tuple(event[1:]) in names:
                continue
            if event[0] == 'name' and renamed(*event[1:]) & names:
                continue
            # Its name was looked up before, and was reported.
            if event[0] == 'audit' and event[1].startswith('import ') and (
                    event[1][len('import '):] in modules):
                continue
            yield reader, event


def renamed(module, name):
    """Names of Python 2 that a reader may have turned into this one."""
    found = {old for old, new in compat.NAME_MAPPING.items()
             if new == (module, name)}
    return found | {(old, name) for old, new in compat.IMPORT_MAPPING.items()
                    if new == module}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--count', type=int, default=6000)
    parser.add_argument('--seed', type=int, default=20240229)
    parser.add_argument('--keep', type=pathlib.Path)
    parser.add_argument('--files', nargs='*', default=[])
    options = parser.parse_args()
    children = [Child(path) for path in interpreters()]
    counted = collections.Counter()
    errors = collections.Counter()
    failures = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(len(children)) as pool:
        folder = pathlib.Path(folder)
        for first in range(0, options.count, BATCH):
            paths = []
            for number in range(first, min(first + BATCH, options.count)):
                path = folder / ('%d.pkl' % number)
                path.write_bytes(Maker('%d/%d' % (
                    options.seed, number)).make())
                paths.append(path)
            look(options, paths, children, pool, counted, errors, failures)
            for path in paths:
                path.unlink()
        for i in range(0, len(options.files), BATCH):
            look(options, [pathlib.Path(p) for p in
                           options.files[i:i + BATCH]],
                 children, pool, counted, errors, failures)
    for child in children:
        child.close()
    seconds = time.monotonic() - start
    print('%d pickles in %.0f s: %s' % (
        sum(counted.values()), seconds,
        ', '.join('%d %s' % (n, v) for v, n in sorted(counted.items()))))
    print('readers of SAFE ones: %s' % dict(errors.most_common(12)))
    for failure in failures[:40]:
        print('FAILED', failure)
    print('%d failed, %d interpreters' % (len(failures), len(children)))
    # Without both kinds nothing was compared.
    enough = counted['SAFE'] * 50 > options.count and counted['DANGEROUS'] > 0
    return 1 if failures or not (enough or options.files) else 0


def look(options, paths, children, pool, counted, errors, failures):
    found = verdicts(options.program, paths)
    for _ in range(len(paths) - len(found)):
        counted['none'] += 1
    safe = []
    for path, verdict, names in found:
        counted[verdict] += 1
        if verdict == 'SAFE':
            safe.append((pathlib.Path(path), names))

    def ask(child):
        return [(child, path, names, child.look(path.read_bytes()))
                for path, names in safe]
    for answered in pool.map(ask, children):
        for child, path, names, answers in answered:
            for _, _, error in answers:
                errors[error or 'loaded'] += 1
            for reader, event in complaints(answers, names):
                failures.append('%s: %s %s: %s' % (
                    path.name, child.interpreter.name, reader, event))
                if options.keep:
                    options.keep.mkdir(exist_ok=True)
                    shutil.copy(path, options.keep)


if __name__ == '__main__':
    sys.exit(main())
