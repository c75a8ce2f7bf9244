# -*- coding: utf-8 -*-
"""Really unpickles what it is given, and says what that did.

    python unpickling_child.py [MODULE...] < pairs > lines

Runs under CPython 2.7 and 3.6 to 3.14. Its input is a sequence of pickles, each
after its size in 8 bytes (little-endian); for each it prints one line of JSON:
a list of [reader, events, error]. The readers are the unpickler in C and the
one in Python, from a file object and, in C, from bytes. An event is one of

    ["name", module, name]   a name was looked up
    ["stub", what]           a function that is replaced here was called, or
                             a module that is not there was imported
    ["audit", event]         the interpreter announced such an event (3.8+)
    ["changed", what]        a class or function is no longer as it was

Nothing dangerous happens: what runs programs, evaluates source or opens files
is replaced by a function that records and raises, an audit hook refuses the
rest, and limits bound time and memory.
"""
from __future__ import print_function

import collections
import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import warnings

PY2 = sys.version_info[0] == 2
if PY2:
    import cPickle
    import __builtin__ as builtins
else:
    import builtins

# What harmless pickles may import is imported before the hooks are there.
for _name in ('argparse array datetime decimal fractions functools itertools '
              'logging operator pathlib random re uuid typing types enum '
              'ipaddress zoneinfo numbers string copyreg copy_reg collections '
              'collections.abc UserDict UserList UserString encodings.latin_1 '
              'encodings.ascii encodings.utf_8 encodings.idna encodings.hex_codec '
              'encodings.raw_unicode_escape subprocess socket http.client '
              'urllib.request commands webbrowser runpy importlib pkgutil '
              'shutil tempfile ctypes pty timeit code hashlib linecache '
              'tokenize importlib.resources').split():
    try:
        __import__(_name)
    except ImportError:
        pass
# Further modules, of names that are plain.
for _name in sys.argv[1:]:
    try:
        __import__(_name)
    except Exception:
        pass

SECONDS = 4
MEMORY = 1 << 30

events = []
watching = [False]


class Refused(Exception):
    pass


def record(*event):
    if watching[0]:
        if len(events) < 1000:
            events.append(list(event))


def refuse(what):
    def refused(*arguments, **keywords):
        if watching[0]:
            record('stub', what)
            raise Refused(what)
        return original(*arguments, **keywords)
    module, name = what.rsplit('.', 1)
    original = getattr(sys.modules[module], name, None)
    refused.__name__ = name
    return refused


REPLACED = {
    'os': 'system popen execv execve execvp spawnv fork remove unlink rename '
          'mkdir rmdir chmod kill putenv',
    'subprocess': 'call check_call check_output getoutput getstatusoutput run',
    'commands': 'getoutput getstatusoutput',
    'webbrowser': 'open', 'runpy': 'run_path run_module _run_code',
    'importlib': 'reload', 'shutil': 'rmtree copy move',
    'pkgutil': 'resolve_name', 'pty': 'spawn', 'timeit': 'timeit',
    builtins.__name__: 'eval execfile input raw_input breakpoint apply',
}
if not hasattr(sys, 'addaudithook'):
    REPLACED[builtins.__name__] += ' open file'

# The beginnings of events of sys.addaudithook that no harmless pickle causes.
AUDITED = ('os.', 'subprocess.', 'exec', 'compile', 'open', 'socket.',
           'ctypes.', 'shutil.', 'tempfile.', 'urllib.', 'webbrowser.',
           'pty.', 'import', 'code.', 'function.', 'marshal.',
           'object.__setattr__', 'object.__delattr__', 'signal.', 'syslog.',
           'http.', 'ftplib.', 'smtplib.', 'glob.', 'gc.', 'builtins.input',
           'cpython.run_', 'sqlite3.', 'mmap.', 'resource.', 'sys.settrace',
           'sys.setprofile', 'sys.addaudithook')


def audit_hook(event, arguments):
    if not watching[0] or not event.startswith(AUDITED):
        return
    detail = event
    if event == 'import':
        detail = 'import %s' % (arguments[0],)
        if str(arguments[0]).startswith(('encodings.', 'tzdata')):
            return
    if event == 'open':
        path = str(arguments[0])
        if 'zoneinfo' in path or '/encodings/' in path:
            return
        detail = 'open %s' % path
    if event == 'compile' and arguments[1] == '<string>':
        return  # typing.ForwardRef, which does not evaluate it
    watching[0] = False
    events.append(['audit', detail])
    watching[0] = True
    raise Refused(detail)


# Modules that harmless pickles may refer to and that are not installed here:
# their names are the only thing that is checked.
class Named(object):
    def __new__(cls, *arguments, **keywords):
        return object.__new__(cls)

    def __init__(self, *arguments, **keywords):
        pass

    def __setstate__(self, state):
        pass

    def append(self, item):
        pass

    extend = add = append

    def __setitem__(self, key, value):
        pass


def call_second(name, constructor):
    return constructor(name)


def call_first(function, kind, arguments, state=None):
    return function(*arguments)


STAND_INS = {
    ('numpy.random._pickle', '__generator_ctor'): call_second,
    ('numpy.random._pickle', '__randomstate_ctor'): call_second,
    ('torch._tensor', '_rebuild_from_type_v2'): call_first,
    ('torch._tensor', '_rebuild_from_type'): call_first,
}


def find(reader, module, name):
    """What find_class does, with stand-ins for what is not installed."""
    record('name', module, name)
    if (module, name) == ('torch.storage', '_load_from_bytes'):
        return lambda data: reader(data)
    if (module, name) in STAND_INS:
        return STAND_INS[module, name]
    if module.split('.')[0] in ('torch', 'numpy', '__torch__', 'nobody'):
        if module.split('.')[0] == 'nobody':
            return refuse_unknown(module + '.' + name)
        return type(str(name.split('.')[-1]) or 'x', (Named,), {})
    return None


def refuse_unknown(what):
    def unknown(*arguments, **keywords):
        record('stub', what)
        return Named()
    return unknown


# As many pickles as there are, up to a few: a file can hold several.
SEVERAL = 4


def read_all(load):
    for _ in range(SEVERAL):
        load()


if not PY2:
    class CReader(pickle.Unpickler):
        def find_class(self, module, name):
            return find(read_c_file, module, name) or (
                pickle.Unpickler.find_class(self, module, name))

        def persistent_load(self, id):
            return ('persistent', id)


class PythonReader(pickle.Unpickler if PY2 else pickle._Unpickler):
    def find_class(self, module, name):
        base = pickle.Unpickler if PY2 else pickle._Unpickler
        return find(read_python, module, name) or (
            base.find_class(self, module, name))

    def persistent_load(self, id):
        return ('persistent', id)


def find_global(module, name):
    found = find(read_c_file, module, name)
    if found is None:
        __import__(module)
        found = getattr(sys.modules[module], name)
    return found


def c_reader(source):
    if not PY2:
        return CReader(source)
    reader = cPickle.Unpickler(source)
    reader.find_global = find_global
    reader.persistent_load = lambda id: ('persistent', id)
    return reader


def read_c_file(data):
    source = io.BytesIO(data)
    read_all(lambda: c_reader(source).load())


def read_c_buffered(data):
    """From what has peek(), as a real file has."""
    source = io.BufferedReader(io.BytesIO(data))
    read_all(lambda: CReader(source).load())


def read_python(data):
    source = io.BytesIO(data)
    read_all(lambda: PythonReader(source).load())


READERS = [('c', read_c_file), ('python', read_python)]
if not PY2:
    READERS.append(('c buffered', read_c_buffered))


def shared_state():
    """What a pickle could change for the whole process."""
    seen = {}
    for owner in (collections.Counter, collections.OrderedDict,
                  Named, pickle.Unpickler,
                  getattr(collections, 'UserDict', None),
                  sys.modules.get('random') and sys.modules['random'].Random,
                  sys.modules['fractions'].Fraction,
                  sys.modules['uuid'].UUID,
                  sys.modules['logging'].getLogger('a').__class__):
        if owner is not None:
            seen[str(owner)] = sorted(
                (key, id(value)) for key, value in owner.__dict__.items()
                if key not in ('__abstractmethods__', '_abc_cache',
                               '_abc_registry', '_abc_negative_cache',
                               '_abc_negative_cache_version', '__doc__',
                               '__dict__', '__weakref__'))
    for function in (sys.modules['uuid'].uuid3,
                     sys.modules['re'].compile,
                     getattr(sys.modules.get('copyreg') or
                             sys.modules['copy_reg'], '_reconstructor'),
                     sys.modules['functools'].wraps):
        seen[function.__name__] = (sorted(function.__dict__),
                                   id(function.__code__),
                                   function.__defaults__)
    return seen


def out_of_time(number, frame):
    raise Refused('out of time')


def look(data):
    answers = []
    for name, reader in READERS:
        del events[:]
        before = shared_state()
        error = None
        signal.alarm(SECONDS)
        watching[0] = True
        try:
            reader(data)
        except BaseException as thrown:
            error = type(thrown).__name__
        watching[0] = False
        signal.alarm(0)
        after = shared_state()
        found = list(events)
        for key in before:
            if before[key] != after[key]:
                found.append(['changed', key])
        answers.append([name, found, error])
    return answers


def main():
    signal.signal(signal.SIGALRM, out_of_time)
    warnings.simplefilter('ignore')
    sys.modules['random'].seed('text')  # imports what hashes it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    os.chdir('/')
    if hasattr(sys, 'addaudithook'):
        sys.addaudithook(audit_hook)
    source = sys.stdin if PY2 else sys.stdin.buffer
    # What a pickle prints is not an answer.
    sink = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for module, names in REPLACED.items():
        if module in sys.modules:
            for name in names.split():
                if hasattr(sys.modules[module], name):
                    setattr(sys.modules[module], name,
                            refuse(module + '.' + name))
    sink.write(json.dumps(sys.version_info[:3]) + '\n')
    sink.flush()
    while True:
        size = source.read(8)
        if len(size) < 8:
            return
        data = source.read(struct.unpack('<Q', size)[0])
        line = json.dumps(look(data), ensure_ascii=True)
        sink.write(line + '\n')
        sink.flush()


if __name__ == '__main__':
    main()
