#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Writes pickles of everything that this interpreter can pickle.

    python make_pickles.py OUTDIR [--seed N] [--random N]

Runs under CPython 2.7 and 3.6 to 3.13; each writes what its own picklers make
of the same cases, in every protocol it has. One file a pickle:

    NAME.protoN.pkl            by the interpreter's pickler in C
    NAME.protoN.pure.pkl       by the one in Python, where its bytes differ
    NAME.protoN.optimized.pkl  after pickletools.optimize, where that differs
    NAME.protoN.pkl.bufferK    the K-th out-of-band buffer of that pickle
    several_*.pkl              two or more pickles, one after the other
    handmade_*.pkl             opcodes that today's picklers do not write

The classes live in the module `make_pickles`; a reader that wants to load the
pickles puts this folder on its path. What an interpreter could not pickle is
listed on stderr; for the same seed and interpreter the files are the same.
"""
from __future__ import print_function

import argparse
import collections
import datetime
import decimal
import fractions
import io
import os
import pickle
import pickletools
import random
import sys
import uuid

PY2 = sys.version_info[0] == 2
if PY2:
    import cPickle as c_pickle
    import copy_reg as copyreg
    text_type, byte_of = unicode, chr  # noqa: F821
else:
    import _pickle as c_pickle
    import copyreg
    text_type = str

    def byte_of(code):
        return bytes((code,))

HIGHEST = pickle.HIGHEST_PROTOCOL


# ---------------------------------------------------------------- the classes

class OldStyle:  # old style under Python 2 only
    def __init__(self, x=None):
        self.x = x


class OldStyleWithArgs:
    def __init__(self, *args):
        self.args = args

    def __getinitargs__(self):
        return self.args


class NewStyle(object):
    def __init__(self, x=None):
        self.x = x


class Empty(object):
    pass


class Reduced(object):
    def __init__(self, *args):
        self.args = args

    def __reduce__(self):
        return Reduced, self.args


class ReducedFully(object):
    def __init__(self):
        self.items, self.pairs = [], {}

    def append(self, item):
        self.items.append(item)

    def extend(self, items):
        self.items.extend(items)

    def __setitem__(self, key, value):
        self.pairs[key] = value

    def __reduce_ex__(self, protocol):
        return (ReducedFully, (), {'protocol': protocol}, iter(self.items),
                iter(sorted(self.pairs.items())))


class ReducedToName(object):
    def __reduce__(self):
        return 'SINGLETON'


SINGLETON = ReducedToName()


def set_state(target, state):
    target.__dict__.update(state)


class ReducedWithSetter(object):  # the sixth item came with Python 3.8
    def __reduce__(self):
        return ReducedWithSetter, (), {'a': 1}, None, None, set_state


class Stateful(object):
    def __init__(self, state):
        self.state = state

    def __getstate__(self):
        return self.state

    def __setstate__(self, state):
        self.state = state


class Slots(object):
    __slots__ = ('a', 'b')


class SlotsAndDict(Slots):
    pass


class NewArgs(tuple):
    def __new__(cls, *args):
        return tuple.__new__(cls, args)

    def __getnewargs__(self):
        return tuple(self)


class NewArgsEx(object):
    def __new__(cls, *args, **keywords):
        self = object.__new__(cls)
        self.made_with = None
        return self

    def __getnewargs_ex__(self):
        return (1, 'two'), {'three': 3, 'four': [4]}


class MyInt(int):
    pass


class MyFloat(float):
    pass


class MyText(text_type):
    pass


class MyBytes(bytes):
    pass


class MyTuple(tuple):
    pass


class MyList(list):
    pass


class MyDict(dict):
    pass


class MySet(set):
    pass


class Node(object):
    def __init__(self):
        self.next = None

    def __hash__(self):
        return 1


class Outer(object):
    class Inner(object):
        class Innermost(object):
            pass

    def method(self):
        pass


class Extension1(object):
    pass


class Extension2(object):
    pass


class Extension4(object):
    pass


Point = collections.namedtuple('Point', 'x y')


def function():
    pass


if not PY2:
    # A name beyond ASCII, which protocols below 3 cannot have.
    globals()[u'Kl\xe4sse'] = type(u'Kl\xe4sse', (object,),
                                   {'__module__': __name__})

try:
    import enum

    class Colour(enum.Enum):
        RED = 1
        BLUE = u'blue'

    class Level(enum.IntEnum):
        LOW = 1

    class Flags(enum.IntFlag if hasattr(enum, 'IntFlag') else enum.IntEnum):
        A = 1
        B = 2
except ImportError:
    enum = None


# ------------------------------------------------------------------ the cases
# Each function yields (name, value).

def constants():
    yield 'none', None
    yield 'true', True
    yield 'false', False
    yield 'ellipsis', Ellipsis
    yield 'not_implemented', NotImplemented
    yield 'type_of_none', type(None)
    yield 'type_of_ellipsis', type(Ellipsis)


def integers():
    for number in (0, 1, 2, 10, 100, 127, 200, 255, 1000):
        yield 'int_%d' % number, number
        yield 'int_minus_%d' % number, -number
    for power in (7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48, 55, 56, 62, 63,
                  64, 65, 127, 128, 255, 256, 2000, 2031, 2039, 2040, 2047,
                  2048, 5000):
        for delta, word in ((-1, '_less_1'), (0, ''), (1, '_plus_1')):
            number = 2 ** power + delta
            yield 'int_2_to_%d%s' % (power, word), number
            yield 'int_minus_2_to_%d%s' % (power, word), -number
    if PY2:
        for number in (0, 1, -1, 255, 256, -256, 2 ** 31, 2 ** 40):
            yield ('long_%d' % number).replace('-', 'minus_'), long(number)  # noqa: F821,E501


def floats():
    for name, number in (
            ('zero', 0.0), ('minus_zero', -0.0), ('one', 1.0), ('tenth', 0.1),
            ('minus_quarter', -0.25), ('third', 1 / 3.0), ('pi', 3.14159265),
            ('1e15', 1e15), ('1e16', 1e16), ('1e17', 1e17), ('1e22', 1e22),
            ('1e_minus_4', 1e-4), ('1e_minus_5', 1e-5), ('1e308', 1e308),
            ('largest', sys.float_info.max), ('smallest', sys.float_info.min),
            ('denormal', 5e-324), ('minus_denormal', -1e-310),
            ('2_to_53', 2.0 ** 53), ('2_to_53_plus_1', 2.0 ** 53 + 2),
            ('inf', float('inf')), ('minus_inf', -float('inf')),
            ('nan', float('nan')), ('minus_nan', -float('nan'))):
        yield 'float_' + name, number
    yield 'complex', complex(1.5, -2.0)
    yield 'complex_nan', complex(float('nan'), -0.0)


def texts():
    yield 'text_empty', u''
    yield 'text_ascii', u'hello'
    yield 'text_all_ascii', u''.join(map(chr, range(128)))
    yield 'text_latin1', u'caf\xe9 \xff\x80\xad'
    yield 'text_bmp', u'\u20ac\u4e2d\u6587\u202e\ufeff\uffff'
    yield 'text_astral', u'\U0001f600\U0010ffff'
    yield 'text_mixed', u'a\xe9\u20ac\U0001f600'
    yield 'text_surrogate_high', u'\ud800'
    yield 'text_surrogate_low', u'x\udc80y'
    yield 'text_surrogates_swapped', u'\udc00\ud800'
    yield 'text_nul', u'a\0b'
    yield 'text_newlines', u'a\nb\rc\r\n\x1a\x85\u2028\u2029'
    yield 'text_backslashes', u'\\ \\\\ \\n \\u0041 \\\\u0041 \\x41 \\'
    yield 'text_quotes', u'it\'s "quoted" \'\'\' """'
    for length in (1, 127, 128, 254, 255, 256, 257, 65535, 65536, 70000):
        yield 'text_length_%d' % length, u'x' * length
    for length in (127, 128, 255, 256, 65535, 65536):
        yield 'text_utf8_length_%d' % length, u'\xe9' * length
    yield 'text_over_a_frame', [u'a' * 65535, u'b' * 65537, u'c' * 131072]


def byte_strings():
    """Python 2's str; Python 3's bytes."""
    yield 'bytes_empty', b''
    yield 'bytes_ascii', b'hello'
    yield 'bytes_all', b''.join(map(byte_of, range(256)))
    yield 'bytes_high', b'\x80\xff\xfe'
    yield 'bytes_nul', b'\0'
    yield 'bytes_newlines', b'a\nb\r\n\x1a\\n\\'
    yield 'bytes_quotes', b'it\'s "quoted"'
    yield 'bytes_single_quote', b"'"
    yield 'bytes_double_quote', b'"'
    for length in (1, 127, 128, 254, 255, 256, 257, 65535, 65536, 70000):
        yield 'bytes_length_%d' % length, b'x' * length
    yield 'bytes_over_a_frame', [b'a' * 65535, b'b' * 65537]
    yield 'bytearray_empty', bytearray()
    yield 'bytearray_short', bytearray(b'a\x00\xff\n')
    for length in (255, 256, 65536):
        yield 'bytearray_length_%d' % length, bytearray(b'\xe9') * length


def containers():
    for name, make in (('list', list), ('tuple', tuple), ('set', set),
                       ('frozenset', frozenset)):
        for size in (0, 1, 2, 3, 4, 5, 300, 999, 1000, 1001, 1002, 2001):
            yield '%s_of_%d' % (name, size), make(range(size))
    for size in (0, 1, 2, 3, 300, 999, 1000, 1001, 1002, 2500):
        yield 'dict_of_%d' % size, dict((i, str(i)) for i in range(size))
    yield 'dict_of_keys', {None: 1, True: 2, 5: 3, 2.5: 4, u'k': 5, b'b': 6,
                           (1, u'x'): 7, frozenset([1]): 8, 2 ** 70: 9}
    yield 'dict_of_nan', {float('nan'): 1}
    nested = ()
    for size in (1, 2, 3, 4, 1, 2, 3, 4):
        nested = (nested,) * size
    yield 'tuples_nested', nested
    for name, start, wrap in (('list', [], lambda x: [x]),
                              ('tuple', (), lambda x: (x,)),
                              ('dict', {}, lambda x: {u'k': x})):
        value = start
        for _ in range(100):
            value = wrap(value)
        yield '%s_depth_100' % name, value
    yield 'mixed', {u'a': [1, 2.5, None, (True, False, {u'b': b'c'})],
                    u'd': (set([1]), frozenset([2]), [[], (), {}])}


def sharing():
    item = [1, 2]
    yield 'shared_list', [item, item, (item, {u'k': item})]
    text = u'shared'
    yield 'shared_text', [text, text, {text: text}]
    blob = b'shared bytes'
    yield 'shared_bytes', [blob, blob]
    pair = (1, u'two')
    yield 'shared_tuple', [pair, pair, (pair, pair)]
    frozen = frozenset([7])
    yield 'shared_frozenset', [frozen, frozen]
    array = bytearray(b'array')
    yield 'shared_bytearray', [array, array]
    number = 2 ** 100
    yield 'shared_number', [number, number, 1.5, 1.5]
    thing = NewStyle(1)
    yield 'shared_object', [thing, thing, {u'k': thing}]
    many = [(i, i) for i in range(300)]
    yield 'shared_beyond_256', many + many
    name = u'n' * 300
    yield 'shared_long_text', [name, name]


def cycles():
    a = []
    a.append(a)
    yield 'cycle_list', a
    b = {}
    b[u'self'] = b
    yield 'cycle_dict', b
    c = ([],)
    c[0].append(c)
    yield 'cycle_tuple_1', c
    yield 'cycle_tuple_1_from_list', c[0]
    for size in (2, 3, 4, 5):
        d = tuple([] for _ in range(size))
        d[0].append(d)
        d[-1].append(d)
        yield 'cycle_tuple_%d' % size, d
    e = ({},)
    e[0][u'up'] = e
    yield 'cycle_tuple_dict', e
    f, g = [], {}
    f.append(g)
    g[1] = f
    yield 'cycle_list_dict', f
    h = Node()
    h.next = h
    yield 'cycle_object', h
    i, j = Node(), Node()
    i.next, j.next = j, i
    yield 'cycle_objects', [i, j]
    k = Node()
    k.next = set([k])
    yield 'cycle_set', k.next
    yield 'cycle_set_from_object', k
    m = Node()
    m.next = frozenset([m])
    yield 'cycle_frozenset', m.next
    yield 'cycle_frozenset_from_object', m
    n = Node()
    n.next = {n: n}
    yield 'cycle_dict_key', n
    o = OldStyle()
    o.x = [o]
    yield 'cycle_old_style', o
    p = MyList()
    p.append(p)
    yield 'cycle_list_subclass', p
    q = MyDict()
    q[u'k'] = (q,)
    yield 'cycle_dict_subclass', q
    r = Reduced([])
    r.args[0].append(r)
    yield 'cycle_reduce_arguments', r.args[0]
    s = collections.deque()
    s.append(s)
    yield 'cycle_deque', s


def objects():
    yield 'old_style', OldStyle([1])
    yield 'old_style_args', OldStyleWithArgs(1, u'two')
    yield 'old_style_no_args', OldStyleWithArgs()
    yield 'new_style', NewStyle({u'k': 1})
    yield 'new_style_empty', Empty()
    yield 'new_styles', [NewStyle(i) for i in range(5)]
    yield 'reduce_no_args', Reduced()
    yield 'reduce_args', Reduced(1, [2], u'three', None)
    full = ReducedFully()
    yield 'reduce_full_empty', full
    full = ReducedFully()
    full.items, full.pairs = [1], {u'a': 1}
    yield 'reduce_full_single', full
    full = ReducedFully()
    full.items = list(range(1001))
    full.pairs = dict((i, i) for i in range(1001))
    yield 'reduce_full_batches', full
    yield 'reduce_to_name', SINGLETON
    if sys.version_info >= (3, 8):
        yield 'reduce_state_setter', ReducedWithSetter()
    for name, state in (('none', None), ('false', False), ('zero', 0),
                        ('empty', {}), ('list', [1, 2]), ('text', u'state'),
                        ('tuple', (None, {u'a': 1})), ('dict', {5: 6})):
        yield 'state_' + name, Stateful(state)
    slots = Slots()
    yield 'slots_unset', slots
    slots = Slots()
    slots.a, slots.b = 1, u'b'
    yield 'slots', slots
    both = SlotsAndDict()
    both.a, both.c = 1, [2]
    yield 'slots_and_dict', both
    yield 'new_args', NewArgs(1, u'two', [3])
    yield 'new_args_empty', NewArgs()
    yield 'new_args_ex', NewArgsEx()
    for name, thing in (
            ('int', MyInt(5)), ('float', MyFloat(2.5)),
            ('text', MyText(u'text')), ('bytes', MyBytes(b'bytes')),
            ('tuple', MyTuple((1, 2))), ('list', MyList([1, 2])),
            ('dict', MyDict({u'a': 1})), ('set', MySet([1]))):
        thing.note = u'kept'
        yield 'subclass_of_' + name, thing
    yield 'namedtuple', Point(1, u'y')
    yield 'extension_1', [Extension1(), Extension1, Extension1()]
    yield 'extension_2', [Extension2(), Extension2]
    yield 'extension_4', [Extension4(), Extension4]
    yield 'exception', ValueError(u'message', 5)
    error = KeyError(u'key')
    error.extra = 1
    yield 'exception_with_state', error
    yield 'os_error', IOError(2, 'No such file', 'name')
    yield 'plain_object', object()


def names():
    yield 'name_class', NewStyle
    yield 'name_old_class', OldStyle
    yield 'name_function', function
    yield 'name_builtins', [len, int, text_type, bytes, dict, sorted, object,
                            range, zip, map, ValueError, IOError, set]
    yield 'name_modules', [os.path.join, collections.OrderedDict,
                           datetime.datetime, uuid.UUID, io.BytesIO]
    yield 'name_nested', Outer.Inner
    yield 'name_nested_twice', Outer.Inner.Innermost
    yield 'name_nested_instance', Outer.Inner()
    yield 'name_method', Outer.method
    yield 'name_bound_method', Outer().method
    yield 'name_builtin_method', [].append
    if not PY2:
        yield 'name_beyond_ascii', globals()[u'Kl\xe4sse']
        yield 'name_beyond_ascii_instance', globals()[u'Kl\xe4sse']()


def library():
    ordered = collections.OrderedDict([(u'b', 1), (u'a', 2)])
    yield 'ordered_dict', ordered
    ordered = collections.OrderedDict(ordered)
    ordered.note = 1
    yield 'ordered_dict_with_state', ordered
    yield 'ordered_dict_empty', collections.OrderedDict()
    default = collections.defaultdict(list)
    default[u'k'].append(1)
    yield 'defaultdict', default
    yield 'defaultdict_none', collections.defaultdict(None, {1: 2})
    yield 'counter', collections.Counter(u'aab')
    yield 'deque', collections.deque([1, u'two', 3])
    yield 'deque_bounded', collections.deque([1, 2], 5)
    yield 'range', range(1, 10, 2)
    if PY2:
        yield 'xrange', xrange(1, 10, 2)  # noqa: F821
        yield 'range_huge', xrange(10 ** 9)  # noqa: F821
    else:
        yield 'range_huge', range(2 ** 70)
    yield 'slice', slice(1, None, -2)
    yield 'iterator_list', iter([1, 2])
    yield 'iterator_range', iter(range(3))
    yield 'date', datetime.date(2024, 2, 29)
    yield 'time', datetime.time(23, 59, 58, 999999)
    yield 'datetime', datetime.datetime(2038, 1, 19, 3, 14, 8, 1)
    yield 'timedelta', datetime.timedelta(-1, 5, 7)
    if hasattr(datetime, 'timezone'):
        utc = datetime.timezone.utc
        yield 'timezone', utc
        yield 'timezone_named', datetime.timezone(
            datetime.timedelta(hours=-3, minutes=-30), u'here')
        yield 'datetime_aware', datetime.datetime(2000, 1, 1, tzinfo=utc)
        if sys.version_info >= (3, 6):
            yield 'datetime_fold', datetime.datetime(2000, 1, 1, fold=1)
    yield 'decimal', [decimal.Decimal(text) for text in
                      ('0', '-0.10', '1E+1000', 'NaN', '-Infinity')]
    yield 'fraction', fractions.Fraction(-22, 7)
    yield 'uuid', uuid.UUID(int=0x12345678123456781234567812345678)
    yield 'bytes_io', io.BytesIO(b'contents')
    yield 'string_io', io.StringIO(u'contents')
    yield 'random_state', random.Random(5)
    if enum:
        yield 'enum', [Colour.RED, Colour.BLUE, Colour.RED]
        yield 'enum_class', Colour
        yield 'int_enum', Level.LOW
        yield 'flags', [Flags.A, Flags.B]
    try:
        import pathlib
        yield 'path', pathlib.PurePosixPath('/a/b/c.txt')
        yield 'windows_path', pathlib.PureWindowsPath('C:\\a\\b')
    except ImportError:
        pass
    try:
        import types
        yield 'simple_namespace', types.SimpleNamespace(a=1, b=[2])
        yield 'generic_alias', list[int]
    except (AttributeError, TypeError):
        pass
    try:
        import array
        yield 'array', array.array('d', [1.5, -0.0])
        yield 'array_ints', array.array('i', [1, -1, 2 ** 31 - 1])
    except ImportError:
        pass
    import functools
    yield 'partial', functools.partial(int, base=2)


class RandomStructures(object):
    """Random trees that share parts and hold themselves."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def leaf(self):
        r = self.random
        return r.choice((
            lambda: None,
            lambda: r.random() < 0.5,
            lambda: r.randint(-300, 300),
            lambda: r.randint(-2 ** r.randint(1, 90), 2 ** r.randint(1, 90)),
            lambda: r.uniform(-1, 1) * 10 ** r.randint(-20, 20),
            lambda: u''.join(r.choice(u'ab\xe9\u20ac\U0001f600\n\\\'"')
                             for _ in range(r.randint(0, 12))),
            lambda: b''.join(byte_of(r.randint(0, 255))
                             for _ in range(r.randint(0, 12))),
            lambda: bytearray(b'xyz'[:r.randint(0, 3)]),
            lambda: r.choice((len, NewStyle, Outer, collections.OrderedDict)),
        ))()

    def key(self):
        r = self.random
        return r.choice((lambda: r.randint(0, 50), lambda: u'key%d'
                         % r.randint(0, 50), lambda: (r.randint(0, 5), u'k'),
                         lambda: None, lambda: r.random()))()

    def value(self, depth, seen):
        r = self.random
        if seen and r.random() < 0.15:
            return r.choice(seen)
        if depth == 0 or r.random() < 0.3:
            made = self.leaf()
        else:
            made = self.container(depth, seen)
        seen.append(made)
        return made

    def container(self, depth, seen):
        r = self.random
        kind = r.randint(0, 6)
        size = r.choice((0, 1, 2, 3, 4, 7))
        parts = [self.value(depth - 1, seen) for _ in range(size)]
        if kind == 0:
            return tuple(parts)
        if kind == 1:
            made = {}
            for part in parts:
                made[self.key()] = part
            return made
        if kind == 2:
            return set(r.randint(0, 99) for _ in parts)
        if kind == 3:
            return frozenset(r.randint(0, 99) for _ in parts)
        if kind == 4:
            made = NewStyle(parts)
            if r.random() < 0.3:
                made.me = made
            return made
        if kind == 5:
            return r.choice((Reduced, OldStyleWithArgs))(*parts)
        if r.random() < 0.2:
            parts.append(parts)
        return parts


# -------------------------------------------------- picklers with options set

def make_pickler(pure, out, protocol, persistent_id=None, **options):
    base = getattr(pickle, '_Pickler', pickle.Pickler) if pure else (
        c_pickle.Pickler)
    if PY2 and not pure:  # a function there, which nobody can inherit from
        pickler = base(out, protocol)
        if persistent_id:
            pickler.persistent_id = persistent_id
        return pickler
    if not persistent_id:
        return base(out, protocol, **options)

    class Pickler(base):
        def persistent_id(self, thing):
            return persistent_id(thing)

    if PY2:
        return Pickler(out, protocol)
    return Pickler(out, protocol, **options)


def dump(value, protocol, pure, fast=False, **options):
    out = io.BytesIO()
    pickler = make_pickler(pure, out, protocol, **options)
    if fast:
        pickler.fast = True
    pickler.dump(value)
    return out.getvalue()


def id_as_text(thing):
    """What protocol 0 can have: one line of ASCII."""
    return 'node-7' if isinstance(thing, Node) else None


def id_as_tuple(thing):
    if isinstance(thing, Node):
        return ('storage', NewStyle, '0', u'cpu', 2 ** 33)
    return None


def id_as_number(thing):
    return 5 if isinstance(thing, Node) else None


# -------------------------------------------------- opcodes nobody writes now

HANDMADE = (
    ('inst', b'(I1\nS"two"\nimake_pickles\nOldStyleWithArgs\n.'),
    ('inst_no_args', b'(imake_pickles\nOldStyle\n.'),
    ('obj', b'(cmake_pickles\nOldStyleWithArgs\nK\x01K\x02o.'),
    ('obj_no_args', b'(cmake_pickles\nOldStyle\no.'),
    ('dup', b']2a.'),
    ('pop', b'K\x01K\x020.'),
    ('pop_of_a_mark', b'K\x01(0.'),
    ('pop_mark', b'K\x01(K\x02K\x031.'),
    ('list_and_dict', b'(K\x01K\x02l(X\x01\x00\x00\x00aK\x03d\x86.'),
    ('dict_repeats_a_key', b'(K\x01K\x02K\x01K\x03d.'),
    ('appends_nothing', b'](e.'),
    ('setitems_nothing', b'}(u.'),
    ('additems_nothing', b'\x80\x04\x8f(\x90.'),
    ('int_forms', b'(I00\nI01\nI0\nI1\nI-0\nI+5\nI 7\nI0x1f\nI-0x10\n'
                  b'I99999999999999999999\nl.'),
    ('long_forms', b'(L0L\nL-1L\nL5\nL0x1fL\nL 7 \nL+3L\n'
                   b'L-99999999999999999999L\nl.'),
    ('float_forms', b'(F1\nF1.\nF.5\nF1e5\nF-1E-5\nFinf\nF-inf\nFnan\n'
                    b'FInfinity\nF+2.5\nF1e-400\nl.'),
    ('string_forms', b"(S''\nS\"\"\nS'a\\'b'\nS'\\x41\\101\\n\\t\\\\'\n"
                     b"S'\\q\\0'\nS\"it's\"\nl."),
    ('unicode_forms', b'(V\nVabc\nV\\u20ac\nV\\U0001f600\nV\xe9\nV\\ud800\n'
                      b'V\\x41\nV\\\\u0041\nV\\\nl.'),
    ('long1_forms', b'(\x8a\x00\x8a\x01\x00\x8a\x01\xff\x8a\x02\xff\x00'
                    b'\x8a\x03\x00\x00\x00\x8a\x04\xff\xff\xff\xff'
                    b'\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00'
                    b'\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff'
                    b'\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01l.'),
    ('long4', b'(\x8b\x00\x00\x00\x00\x8b\x02\x00\x00\x00\x00\x80l.'),
    ('binint_forms', b'(J\x00\x00\x00\x00J\xff\xff\xff\xffJ\x00\x00\x00\x80'
                     b'M\xff\xffK\xffl.'),
    ('counts_longer_than_needed',
     b'(X\x01\x00\x00\x00a\x8d\x01\x00\x00\x00\x00\x00\x00\x00b'
     b'B\x01\x00\x00\x00c\x8e\x01\x00\x00\x00\x00\x00\x00\x00d'
     b'\x96\x01\x00\x00\x00\x00\x00\x00\x00eT\x01\x00\x00\x00fU\x01gl.'),
    ('memo_text_and_binary', b'(]p0\ng0\nh\x00j\x00\x00\x00\x00r\xe8\x03\x00'
                             b'\x00j\xe8\x03\x00\x00l.'),
    ('memo_with_gaps', b'(]q\xff0]r\xff\xff\x0f\x000h\xffj\xff\xff\x0f\x00l.'),
    ('memo_overwritten', b'(K\x01q\x00K\x02q\x00h\x00l.'),
    ('memoize_after_put', b'\x80\x04(K\x01q\x05K\x02\x94h\x01l.'),
    ('proto_twice', b'\x80\x02\x80\x02N.'),
    ('proto_late', b'(N\x80\x02l.'),
    ('no_proto_but_new_opcodes', b'\x88\x85\x94.'),
    ('frames_empty', b'\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00N.'),
    ('frames_many', b'\x80\x04' + b''.join(
        b'\x95\x01\x00\x00\x00\x00\x00\x00\x00' + byte for byte in
        (b']', b'N', b'a', b'.'))),
    ('stack_global', b'\x80\x04X\x0c\x00\x00\x00make_pickles'
                     b'\x8c\x05Outer\x93.'),
    ('build_twice', b'cmake_pickles\nNewStyle\n)R}U\x01aK\x01sb'
                    b'}U\x01bK\x02sb.'),
    ('build_slots', b'cmake_pickles\nSlotsAndDict\n)\x81N}U\x01aK\x01s\x86b.'),
    ('list_depth_500', b']' * 500 + b'a' * 499 + b'.'),
)


# ---------------------------------------------------------------- the writing

class Writer(object):
    def __init__(self, folder):
        self.folder = folder
        self.written = 0
        self.skipped = []

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, 'wb') as out:
            out.write(data)
        self.written += 1

    def add(self, name, value, protocols=None, **options):
        for protocol in protocols or range(HIGHEST + 1):
            stem = '%s.proto%d' % (name, protocol)
            made = set()
            for word, pure in (('', False), ('.pure', True)):
                self.add_one(stem, word, value, protocol, pure, made, options)

    def add_one(self, stem, word, value, protocol, pure, made, options):
        try:
            data = dump(value, protocol, pure, **options)
        except Exception as error:
            self.skip(stem + word, error)
            return
        if data in made:
            return
        made.add(data)
        self.write(stem + word + '.pkl', data)
        try:
            optimized = pickletools.optimize(data)
        except Exception as error:
            self.skip(stem + word + '.optimized', error)
            return
        if optimized not in made:
            made.add(optimized)
            self.write(stem + word + '.optimized.pkl', optimized)

    def skip(self, name, error):
        reason = str(error).split('\n')[0][:80]
        self.skipped.append('%s: %s: %s' % (name, type(error).__name__,
                                            reason))


def add_buffers(writer):
    """Protocol 5's buffers, in the pickle and beside it."""
    if HIGHEST < 5:
        return
    buffer = pickle.PickleBuffer
    shared = buffer(b'shared')
    for name, value in (
            ('read_only', buffer(b'read only')),
            ('writable', buffer(bytearray(b'writable'))),
            ('several', [buffer(b'one'), buffer(bytearray(b'two')),
                         u'between', buffer(b'')]),
            ('shared', [shared, shared]),
            ('large', buffer(bytearray(b'x' * 70000)))):
        writer.add('buffer_%s_inside' % name, value, protocols=[5])
        for word, pure in (('', False), ('.pure', True)):
            buffers = []
            stem = 'buffer_%s_outside.proto5%s.pkl' % (name, word)
            writer.write(stem, dump(value, 5, pure,
                                    buffer_callback=buffers.append))
            for i, each in enumerate(buffers):
                writer.write('%s.buffer%d' % (stem, i), each.raw().tobytes())


def add_persistent(writer):
    node = Node()
    value = [node, 1, {u'k': node}]
    writer.add('persistent_text', value, persistent_id=id_as_text)
    writer.add('persistent_root', node, persistent_id=id_as_text)
    # Protocol 0 has ids as text only: CPython's picklers write str(id).
    writer.add('persistent_tuple', value, range(1, HIGHEST + 1),
               persistent_id=id_as_tuple)
    writer.add('persistent_number', value, range(1, HIGHEST + 1),
               persistent_id=id_as_number)


def add_several(writer):
    values = [1, u'text', [1, [2]], {u'k': NewStyle(1)}, None]
    for protocol in range(HIGHEST + 1):
        writer.write('several_proto%d.pkl' % protocol, b''.join(
            dump(value, protocol, False) for value in values))
    writer.write('several_mixed_protocols.pkl', b''.join(
        dump(values, protocol, False) for protocol in range(HIGHEST + 1)))
    writer.write('several_of_none.pkl', b'N.' * 100)


def add_all(writer, seed, rounds):
    for code, name in ((240, 'Extension1'), (300, 'Extension2'),
                       (70000, 'Extension4')):
        copyreg.add_extension('make_pickles', name, code)
    for cases in (constants, integers, floats, texts, byte_strings, containers,
                  sharing, cycles, objects, names, library):
        for name, value in cases():
            writer.add(name, value)
    text = u'again'
    writer.add('fast_no_memo', [text, text, (1, text), {text: [text]}],
               fast=True)
    if not PY2:
        for name, value in (('builtins', [range(3), zip, map, IOError]),
                            ('bytes', b'\x80'), ('set', set([1]))):
            writer.add('names_of_python_3_' + name, value, range(3),
                       fix_imports=False)
    add_persistent(writer)
    add_buffers(writer)
    add_several(writer)
    for name, data in HANDMADE:
        writer.write('handmade_%s.pkl' % name, data)
    structures = RandomStructures(seed)
    for i in range(rounds):
        writer.add('random_%d_%d' % (seed, i), structures.value(5, []))


def main():
    parser = argparse.ArgumentParser(
        description='Writes pickles of everything this interpreter can '
                    'pickle.')
    parser.add_argument('outdir')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--random', type=int, default=100, metavar='N',
                        help='how many random structures to write')
    options = parser.parse_args()
    if not os.path.isdir(options.outdir):
        os.makedirs(options.outdir)
    writer = Writer(options.outdir)
    add_all(writer, options.seed, options.random)
    for line in writer.skipped:
        print('skipped', line, file=sys.stderr)
    print('%d files written, %d skipped' % (writer.written,
                                            len(writer.skipped)))


if __name__ == '__main__':
    # Again as a module, so that the pickles name `make_pickles` and not
    # `__main__`, which would be the reader's own.
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import make_pickles
    make_pickles.main()
