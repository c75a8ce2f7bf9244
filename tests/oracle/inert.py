"""An unpickler that imports and calls nothing and records everything.

CPython's own unpickler in C does the reading. Every name it would import is an
inert class here, and every call, state, item and persistent id ends up in a
Node, so that the graph that Python saw can be compared with another one.
"""
import copyreg
import io
import pickle

# Extension codes that pickles of make_pickles.py use.
EXTENSIONS = (240, 300, 70000)
EXTENSION_MODULE = '$extension'


class Node:
    """An object that Python would have made by a call."""

    def __init__(self, making, callable, arguments, keywords):
        self.making = making
        self.callable = callable
        self.arguments = arguments
        self.keywords = keywords
        self.items, self.pairs, self.states = [], [], []

    def __setstate__(self, state):
        self.states.append(state)

    def extend(self, items):
        self.items.extend(items)

    def append(self, item):
        self.items.append(item)

    def add(self, item):
        self.items.append(item)

    def __setitem__(self, key, value):
        self.pairs.append((key, value))

    def __call__(self, *arguments):
        return made('call', self, arguments)


class Persistent:
    def __init__(self, id):
        self.id = id


class Buffer(bytearray):
    """An out-of-band buffer."""


calls = []  # every Node of the latest load, in order


def made(making, callable, arguments, keywords=None):
    node = Node(making, callable, arguments, keywords)
    calls.append(node)
    return node


class InertMeta(type):
    # C(...) is what REDUCE does, and OBJ and INST; C.__new__(C, ...) NEWOBJ.
    def __call__(cls, *arguments):
        return made('call', cls, arguments)

    @property
    def __setstate__(cls):
        return cls.states.append


def inert_new(cls, *arguments, **keywords):
    return made('new', cls, arguments, keywords)


classes = {}


def inert_class(module, name):
    """The one class that represents a name."""
    key = (module, name)
    if key not in classes:
        classes[key] = InertMeta('Inert', (), {
            '__new__': inert_new, '__slots__': (), 'names': key, 'states': [],
            # Without it INST and OBJ call __new__ if there are no arguments.
            '__getinitargs__': None})
    return classes[key]


def buffers():
    while True:
        buffer = Buffer(b'b')
        buffer.number = buffers.made
        buffers.made += 1
        yield buffer


class InertUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        found = inert_class(module, name)
        del found.states[:]
        return found

    def persistent_load(self, id):
        return Persistent(id)


for code in EXTENSIONS:
    copyreg._inverted_registry[code] = (EXTENSION_MODULE, str(code))


def load(data):
    """The value of the pickle at the front of `data`, how long the pickle was,
    and all calls that it would have made."""
    del calls[:]
    copyreg._extension_cache.clear()
    buffers.made = 0
    file = io.BytesIO(data)
    # Python 2's strings stay bytes.
    value = InertUnpickler(file, encoding='bytes', buffers=buffers()).load()
    return value, file.tell(), list(calls)
