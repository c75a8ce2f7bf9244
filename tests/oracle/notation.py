"""Compares a value as `postflight pickle --json` writes it with Python's.

Both are walked side by side. What is one object on one side must be one on the
other: an object of ours is known by its anchor, or by its only place.
"""
import json
import math
import re

import inert

CONTAINERS = (list, dict, set, tuple, frozenset, bytearray, inert.Node,
              inert.Persistent)


class Pairs(list):
    """A JSON object with its keys in order, repeated ones too."""

    def get(self, key):
        for name, value in self:
            if name == key:
                return value
        return None


def parse(line):
    return json.loads(line, object_pairs_hook=Pairs)


class Different(Exception):
    pass


def tag(ours):
    """The name of the notation's own object that this is, or None."""
    if isinstance(ours, Pairs) and ours and ours[0][0].startswith('$'):
        return ours[0][0]
    return None


def text_bytes(ours):
    """The bytes of a text, whose JSON may have had to be escaped."""
    text = ours[0][1].encode('utf-8', 'surrogatepass')
    if not ours.get('escaped'):
        return text
    return re.sub(rb'\\(\\|x[0-9a-f]{2})', lambda found: b'\\' if
                  found[1] == b'\\' else bytes([int(found[1][1:], 16)]), text)


def short(value):
    text = repr(value)
    return text if len(text) < 100 else text[:100] + '...'


class Comparison:
    def __init__(self):
        self.anchored = {}  # our values by their anchors
        self.ours_of = {}   # by id of Python's object, the key of ours
        self.theirs_of = {}
        self.todo = []

    def run(self, ours, theirs):
        places = [ours]
        while places:
            place = places.pop()
            if tag(place) == '$anchor':
                self.anchored[place[0][1]] = place[1][1]
            if isinstance(place, Pairs):
                places.extend(value for _, value in place)
            elif isinstance(place, list):
                places.extend(place)
        self.todo.append((ours, theirs, 'value'))
        while self.todo:
            self.meet(*self.todo.pop())

    def fail(self, where, ours, theirs):
        raise Different('%s: ours %s, Python\'s %s' % (
            where, short(ours), short(theirs)))

    def meet(self, ours, theirs, where):
        ours, key = self.resolve(ours)
        has_identity = isinstance(theirs, CONTAINERS) and not (
            isinstance(theirs, (tuple, frozenset)) and not theirs)
        if has_identity:
            mine = self.ours_of.setdefault(id(theirs), key)
            other = self.theirs_of.setdefault(key, id(theirs))
            if mine != key or other != id(theirs):
                raise Different('%s: shared on one side only: %s' % (
                    where, short(ours)))
            if (key, id(theirs)) in self.theirs_of:
                return
            self.theirs_of[key, id(theirs)] = True
        self.compare(ours, theirs, where)

    def resolve(self, ours):
        """The target of an anchor or reference, and a key for identity."""
        if tag(ours) in ('$anchor', '$ref'):
            ours = self.anchored[ours[0][1]]
        return ours, id(ours)

    def content(self, ours, theirs, where):
        """Compares a call's arguments, which Python copies on the way."""
        self.compare(self.resolve(ours)[0], theirs, where)

    def compare(self, ours, theirs, where):
        kind = tag(ours)
        if kind is not None:
            getattr(self, 'compare_' + kind[1:])(ours, theirs, where)
        elif isinstance(ours, Pairs):
            self.pairs(ours, theirs, where)
        elif isinstance(ours, list):
            if type(theirs) is not list:
                self.fail(where, ours, theirs)
            self.items(ours, theirs, where)
        elif isinstance(ours, str):
            if type(theirs) is not str or as_json(theirs) != ours:
                self.fail(where, ours, theirs)
        elif type(ours) is not type(theirs) or not same_scalar(ours, theirs):
            self.fail(where, ours, theirs)

    def items(self, ours, theirs, where):
        if len(ours) != len(theirs):
            self.fail(where, ours, theirs)
        for i, (mine, other) in enumerate(zip(ours, theirs)):
            self.todo.append((mine, other, '%s[%d]' % (where, i)))

    def pairs(self, ours, theirs, where):
        """A dict, where a repeated key keeps its place and its last value."""
        if type(theirs) is not dict:
            self.fail(where, ours, theirs)
        if len(ours) != len(theirs):
            kept = {}
            for key, value in ours:
                plain = key if isinstance(key, (str, int, float)) else id(key)
                kept[plain] = (kept.get(plain, (key,))[0], value)
            ours = list(kept.values())
        self.pair_list(ours, list(theirs.items()), where)

    def pair_list(self, ours, theirs, where):
        if len(ours) != len(theirs):
            self.fail(where, ours, theirs)
        for (key, value), (their_key, their_value) in zip(ours, theirs):
            self.todo.append((key, their_key, where + ' key'))
            self.todo.append((value, their_value,
                              '%s[%s]' % (where, short(their_key))))

    def compare_dict(self, ours, theirs, where):
        flat = ours[0][1]
        self.pairs(list(zip(flat[::2], flat[1::2])), theirs, where)

    def compare_tuple(self, ours, theirs, where):
        if type(theirs) is not tuple:
            self.fail(where, ours, theirs)
        self.items(ours[0][1], theirs, where)

    def compare_set(self, ours, theirs, where):
        self.members(ours, theirs, where, set)

    def compare_frozenset(self, ours, theirs, where):
        self.members(ours, theirs, where, frozenset)

    def members(self, ours, theirs, where, kind):
        # Python does not keep their order, so both are sorted by their
        # representation. At most one object has none.
        if type(theirs) is not kind:
            self.fail(where, ours, theirs)
        self.items(sorted(ours[0][1], key=repr),
                   sorted(theirs, key=repr), where)

    def compare_int(self, ours, theirs, where):
        if type(theirs) is not int or int(ours[0][1], 0) != theirs:
            self.fail(where, ours, theirs)

    def compare_float(self, ours, theirs, where):
        if type(theirs) is not float or not same_scalar(float(ours[0][1]),
                                                        theirs):
            self.fail(where, ours, theirs)

    def compare_bytes(self, ours, theirs, where):
        if type(theirs) is not bytes or text_bytes(ours) != theirs:
            self.fail(where, ours, theirs)

    compare_legacy = compare_bytes

    def compare_bytearray(self, ours, theirs, where):
        if type(theirs) is not bytearray or text_bytes(ours) != theirs:
            self.fail(where, ours, theirs)

    def compare_global(self, ours, theirs, where):
        if type(theirs) is not inert.InertMeta or (
                tuple(map(as_json, theirs.names)) != tuple(ours[0][1])):
            self.fail(where, ours, getattr(theirs, 'names', theirs))

    def compare_extension(self, ours, theirs, where):
        if type(theirs) is not inert.InertMeta or theirs.names != (
                inert.EXTENSION_MODULE, str(ours[0][1])):
            self.fail(where, ours, theirs)

    def compare_persistent(self, ours, theirs, where):
        if type(theirs) is not inert.Persistent:
            self.fail(where, ours, theirs)
        self.todo.append((ours[0][1], theirs.id, where + ' id'))

    def compare_buffer(self, ours, theirs, where):
        read_only = isinstance(theirs, memoryview)
        buffer = theirs.obj if read_only else theirs
        if type(buffer) is not inert.Buffer or (
                ours[0][1] != buffer.number or
                read_only != bool(ours.get('readonly'))):
            self.fail(where, ours, theirs)

    def compare_making(self, ours, theirs, where):
        making = ours[0][1]
        if making == 'touched':
            self.touched(ours, theirs, where)
            return
        # A call is a call, and Python does not see whether there were no
        # keywords or an empty dict of them.
        made = 'new' if making in ('new', 'new_ex') else 'call'
        if type(theirs) is not inert.Node or theirs.making != made:
            self.fail(where, ours, theirs)
        self.todo.append((ours.get('callable'), theirs.callable,
                          where + ' callable'))
        self.content(ours.get('arguments'), theirs.arguments,
                     where + ' arguments')
        if making == 'new_ex':
            self.content(ours.get('keywords'), theirs.keywords,
                         where + ' keywords')
        elif theirs.keywords:
            self.fail(where, ours, theirs.keywords)
        flat = ours.get('pairs') or []
        self.items(ours.get('items') or [], theirs.items, where + ' items')
        self.pair_list(list(zip(flat[::2], flat[1::2])), theirs.pairs,
                       where + ' pairs')
        self.items(ours.get('states') or [], theirs.states, where + ' states')

    def touched(self, ours, theirs, where):
        self.todo.append((ours.get('callable'), theirs, where + ' touched'))
        self.items(ours.get('states') or [], theirs.states, where + ' states')


def as_json(text):
    """JSON takes a high and a low surrogate for one character."""
    if text.isascii():
        return text
    return text.encode('utf-16-le', 'surrogatepass').decode(
        'utf-16-le', 'surrogatepass')


def same_scalar(ours, theirs):
    if isinstance(ours, float):
        if math.isnan(ours):
            return math.isnan(theirs)
        return ours == theirs and math.copysign(1, ours) == math.copysign(
            1, theirs)
    return ours == theirs
