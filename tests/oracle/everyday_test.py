#!/usr/bin/python3
"""Everyday objects must be SAFE.

    everyday_test.py POSTFLIGHT [--keep FOLDER]

Pickles plain objects of Python's library by every protocol: values, containers,
all enumerations, exceptions and named tuples that its modules have, and where
they are installed, what NumPy has and the names that torch's weights-only
loading allows. Each must be SAFE.
"""
import argparse
import array
import calendar
import collections
import configparser
import csv
import datetime
import decimal
import difflib
import email.message
import enum
import fractions
import functools
import graphlib
import grp
import http
import http.cookies
import importlib
import inspect
import io
import ipaddress
import itertools
import json
import logging
import math
import operator
import optparse
import os
import pathlib
import pickle
import plistlib
import pprint
import pwd
import queue
import random
import re
import reprlib
import resource
import shutil
import signal
import socket
import statistics
import string
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import traceback
import types
import typing
import urllib.parse
import uuid
import warnings
import xml.etree.ElementTree
import zipfile
import zoneinfo

# Modules that are no library, or do something when they are imported.
SKIPPED = {'antigravity', 'this', 'idlelib', 'turtle', 'turtledemo', 'tkinter',
           'lib2to3', 'test', 'site', 'distutils', 'ensurepip', 'venv',
           'rlcompleter', 'pty', 'msilib', 'winreg', 'nt'}
# Its last field runs a program when it is read.
NOT_PLAIN = {'platform.uname_result', 'urllib.error.HTTPError'}


def values():
    """By name. What cannot be pickled by a protocol is left out there."""
    utc = datetime.timezone.utc
    yield 'date', datetime.date(2020, 1, 2)
    yield 'datetime', datetime.datetime(2020, 1, 2, 3, 4, 5, 6, utc)
    yield 'fold', datetime.datetime(2020, 1, 1, fold=1)
    yield 'time', datetime.time(1, 2, tzinfo=datetime.timezone(
        datetime.timedelta(hours=1), 'X'))
    yield 'timedelta', datetime.timedelta(1, 2, 3)
    yield 'isocalendar', datetime.date(2020, 1, 2).isocalendar()
    yield 'struct_time', time.gmtime(0)
    yield 'zone', zoneinfo.ZoneInfo('UTC')
    yield 'decimal', decimal.Decimal('1.5')
    yield 'decimal_context', decimal.Context()
    yield 'decimal_tuple', decimal.Decimal('1.5').as_tuple()
    yield 'fraction', fractions.Fraction(1, 3)
    yield 'normal', statistics.NormalDist(1, 2)
    yield 'uuid', uuid.uuid4()
    yield 'uuid1', uuid.uuid1()
    for text in ('1.2.3.4', '::1'):
        yield 'address_' + text, ipaddress.ip_address(text)
        yield 'interface_' + text, ipaddress.ip_interface(text)
        yield 'network_' + text, ipaddress.ip_network(text)
    yield 'path', pathlib.Path('/a')
    yield 'pure_path', pathlib.PureWindowsPath('a/b')
    for code in 'bBhHiIlLqQfd':
        yield 'array_' + code, array.array(code, [1, 2])
    yield 'array_text', array.array('u', 'ab')
    yield 'pattern', re.compile('a.*', re.I)
    yield 'flags', re.I | re.M
    yield 'namespace', argparse.Namespace(a=1, b=[1])
    yield 'simple_namespace', types.SimpleNamespace(a=1)
    yield 'partial', functools.partial(int, base=2)
    yield 'partial_max', functools.partial(max, 1, 2)
    yield 'itemgetter', operator.itemgetter(1, 2)
    yield 'attrgetter', operator.attrgetter('a', 'b.c')
    yield 'random', random.Random(1)
    yield 'template', string.Template('$a')
    yield 'ordered', collections.OrderedDict(a=1)
    yield 'counter', collections.Counter('abc')
    yield 'default_list', collections.defaultdict(list, a=[1])
    yield 'default_none', collections.defaultdict(None)
    yield 'deque', collections.deque([1, 2], 5)
    yield 'chain_map', collections.ChainMap({'a': 1})
    yield 'user_dict', collections.UserDict(a=1)
    yield 'user_list', collections.UserList([1])
    yield 'user_string', collections.UserString('a')
    for name, hint in (
            ('optional', typing.Optional[int]), ('list', typing.List[int]),
            ('dict', typing.Dict[str, int]), ('tuple', typing.Tuple[int, ...]),
            ('literal', typing.Literal['a', 1]), ('any', typing.Any),
            ('callable', typing.Callable[[int], str]), ('alias', list[int]),
            ('annotated', typing.Annotated[int, 'x']), ('type', typing.Type[int]),
            ('union', typing.Union[int, str])):
        yield 'hint_' + name, hint
    if sys.version_info >= (3, 10):
        yield 'hint_bar', int | str
    yield 'bytes_io', io.BytesIO(b'x')
    yield 'string_io', io.StringIO('x')
    yield 'range', range(3)
    yield 'slice', slice(1, 2, 3)
    yield 'complex', 1j
    yield 'bytearray', bytearray(b'x')
    yield 'frozenset', frozenset([1])
    yield 'ellipsis', Ellipsis
    yield 'not_implemented', NotImplemented
    yield 'none_type', type(None)
    yield 'big', 10 ** 400
    yield 'os_error', OSError(2, 'x', 'f')
    yield 'unicode_error', UnicodeDecodeError('utf8', b'x', 0, 1, 'r')
    yield 'json_error', json.JSONDecodeError('m', 'doc', 0)
    yield 'parsed', urllib.parse.urlparse('http://a/b')
    yield 'split', urllib.parse.urlsplit('http://a/b')
    yield 'cookie', http.cookies.SimpleCookie('a=b')
    yield 'element', xml.etree.ElementTree.fromstring('<a><b/></a>')
    yield 'record', logging.LogRecord('a', 10, 'f', 1, 'm', (), None)
    yield 'logger', logging.getLogger('x')
    yield 'formatter', logging.Formatter('%(message)s')
    yield 'signature', inspect.signature(lambda a, b=1, *c, **d: 0)
    yield 'match', difflib.SequenceMatcher(None, 'a', 'a').find_longest_match()
    yield 'stat', os.stat('/')
    yield 'statvfs', os.statvfs('/')
    yield 'terminal', os.terminal_size((1, 2))
    yield 'uname', os.uname()
    yield 'times', os.times()
    yield 'usage', shutil.disk_usage('/')
    yield 'rusage', resource.getrusage(0)
    yield 'user', pwd.getpwuid(0)
    yield 'group', grp.getgrgid(0)
    yield 'call_error', subprocess.CalledProcessError(1, ['a'])
    yield 'completed', subprocess.CompletedProcess(['a'], 0)
    yield 'expired', subprocess.TimeoutExpired('a', 1)
    yield 'empty_queue', queue.Empty()
    yield 'frame', traceback.FrameSummary('f', 1, 'n')
    yield 'wrapper', textwrap.TextWrapper()
    yield 'sorter', graphlib.TopologicalSorter({1: [2]})
    yield 'options', optparse.Values({'a': 1})
    yield 'calendar', calendar.Calendar()
    yield 'email', email.message.EmailMessage()
    yield 'message', email.message.Message()
    yield 'uid', plistlib.UID(1)
    yield 'repr', reprlib.Repr()
    yield 'printer', pprint.PrettyPrinter()
    yield 'encoder', json.JSONEncoder()
    yield 'dialect', csv.excel()
    yield 'zip_info', zipfile.ZipInfo('a')
    yield 'tar_info', tarfile.TarInfo('a')
    yield 'interpolation', configparser.BasicInterpolation()
    yield 'functions', [len, math.sqrt, max, operator.add]
    yield 'signal', signal.SIGINT
    yield 'family', socket.AF_INET
    yield 'status', http.HTTPStatus.OK
    for name, made in (
            ('count', itertools.count(3)), ('cycle', itertools.cycle([1])),
            ('chain', itertools.chain([1], [2])), ('zip', zip([1], [2])),
            ('islice', itertools.islice([1, 2], 1)), ('map', map(abs, [1])),
            ('product', itertools.product([1], [2])), ('list', iter([1, 2])),
            ('repeat', itertools.repeat(1, 3)), ('dict', iter({'a': 1})),
            ('drop', itertools.dropwhile(bool, [1])), ('text', iter('ab')),
            ('star', itertools.starmap(max, [(1, 2)])), ('set', iter({1})),
            ('accumulate', itertools.accumulate([1])), ('tuple', iter((1,))),
            ('filter', filter(None, [1])), ('reversed', reversed([1])),
            ('enumerate', enumerate([1])), ('range', iter(range(3)))):
        yield 'iterator_' + name, made


def of_library():
    """What the modules of the library have of types that only hold values."""
    for name in sorted(sys.stdlib_module_names):
        if name.startswith('_') or name in SKIPPED:
            continue
        try:
            module = importlib.import_module(name)
        except Exception:
            continue
        for key in dir(module):
            made = getattr(module, key, None)
            place = '%s.%s' % (name, key)
            if isinstance(made, enum.Enum):
                yield place, made
            if not isinstance(made, type) or (
                    '%s.%s' % (made.__module__, key) in NOT_PLAIN):
                continue
            try:
                if issubclass(made, enum.Enum):
                    for member in list(made)[:3]:
                        yield '%s.%s' % (place, member.name), member
                elif issubclass(made, BaseException):
                    yield place, made('a')
                elif issubclass(made, tuple) and hasattr(made, '_fields'):
                    yield place, made(*[1] * len(made._fields))
            except TypeError:
                continue


def of_numpy():
    try:
        import numpy as np
    except ImportError:
        return
    for code in ('?', 'b', 'B', 'i2', 'u4', 'i8', 'f2', 'f4', 'f8', 'g', 'c8',
                 'c16', 'S3', 'U3', 'V4', 'M8[s]', 'm8[ns]', '>f4'):
        yield 'numpy_dtype_' + code, np.dtype(code)
        yield 'numpy_array_' + code, np.zeros(3, code)
        yield 'numpy_scalar_' + code, np.zeros(1, code)[0]
        yield 'numpy_type_' + code, np.dtype(code).type
    yield 'numpy_records', np.zeros(2, [('a', 'f4'), ('b', 'i2', (2,))])
    yield 'numpy_rec', np.rec.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f8')])
    yield 'numpy_objects', np.array(['a', None, 1], dtype=object)
    yield 'numpy_fortran', np.asfortranarray(np.ones((2, 3)))
    yield 'numpy_masked', np.ma.array([1, 2], mask=[0, 1])
    yield 'numpy_matrix', np.matrix('1 2')
    yield 'numpy_polynomial', np.poly1d([1, 2])
    yield 'numpy_function', np.add
    yield 'numpy_state', np.random.RandomState(1)
    for bits in (np.random.MT19937, np.random.PCG64, np.random.Philox,
                 np.random.SFC64):
        yield 'numpy_' + bits.__name__, np.random.Generator(bits(1))


def of_torch():
    """The names that loading of weights only allows, as names and called."""
    warnings.simplefilter('ignore')
    try:
        from torch import _weights_only_unpickler as unpickler
    except ImportError:
        return
    for name in unpickler._get_allowed_globals():
        module, name = name.rsplit('.', 1)
        named = b'\x80\2c%s\n%s\n' % (module.encode(), name.encode())
        yield 'torch_%s.%s' % (module, name), named + b'.'
        yield 'torch_%s.%s()' % (module, name), named + b')R.'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--keep', type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    made = []
    for name, value in itertools.chain(values(), of_library(), of_numpy()):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            try:
                made.append(('%s by protocol %d' % (name, protocol),
                             pickle.dumps(value, protocol)))
            except Exception:
                pass
    made += of_torch()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number, (_, data) in enumerate(made):
            (folder / str(number)).write_bytes(data)
        names = [str(folder / str(number)) for number in range(len(made))]
        for first in range(0, len(names), 500):
            run = subprocess.run(
                [options.program, 'pickle', '--summary', '--json'] +
                names[first:first + 500], capture_output=True, check=False)
            for line in run.stdout.splitlines():
                answer = json.loads(line)
                if answer['verdict']['name'] == 'SAFE':
                    continue
                number = int(pathlib.Path(answer['file']).name)
                wrong += 1
                if wrong > 40:
                    continue
                print('FAILED %s is %s: %s' % (
                    made[number][0], answer['verdict']['name'],
                    answer['verdict']['reasons'][0]['message']))
                if options.keep:
                    options.keep.mkdir(exist_ok=True)
                    (options.keep / str(number)).write_bytes(made[number][1])
    print('%d everyday pickles, %d not SAFE' % (len(made), wrong))
    # Not one made would prove nothing.
    return 1 if wrong or len(made) < 2000 else 0


if __name__ == '__main__':
    sys.exit(main())
