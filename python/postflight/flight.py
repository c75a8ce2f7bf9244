"""Flight-recorder dumps: the reference's dictionaries, columns, the verdict."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pickle
import re
import struct
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ._library import Error, Handle, as_list, call, context, library, \
    path_bytes, strings, text


class _Evidence(ctypes.Structure):
    _strings = ctypes.POINTER(ctypes.c_char_p)
    _fields_ = [("size", ctypes.c_size_t), ("dumps", _strings),
                ("dump_count", ctypes.c_size_t), ("hosts", ctypes.c_char_p),
                ("logs", _strings), ("log_count", ctypes.c_size_t),
                ("stacks", _strings), ("stack_count", ctypes.c_size_t)]


_COLUMN = struct.Struct("<QQIIQQQQ")
_STRING = struct.Struct("<QQ")


def _job(paths: Any, hosts: Any, logs: Any, stacks: Any,
         diagnose: bool) -> Handle:
    evidence = _Evidence(ctypes.sizeof(_Evidence))
    kept = [strings(as_list(given)) for given in (paths, logs, stacks)]
    for array, field in zip(kept, ("dump", "log", "stack")):
        setattr(evidence, f"{field}s",
                ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p)))
        setattr(evidence, f"{field}_count", len(array))
    evidence.hosts = path_bytes(hosts) if hosts else None
    return Handle("job", "postflight_job_read", context(),
                  ctypes.byref(evidence), int(diagnose))


# ---- the verdict ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something odd: ``severity`` is note, warning or error."""

    kind: str
    severity: str
    message: str
    where: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What happened, and who is at fault."""

    kind: str
    culprits: Tuple[int, ...]
    confidence: str
    summary: str
    group: Optional[str] = None
    operation: Optional[str] = None
    sequence: Optional[int] = None
    hosts: Tuple[str, ...] = ()
    evidence: Tuple[Any, ...] = ()
    also: Tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class RankState:
    """What one rank was doing."""

    rank: int
    state: str
    host: str = ""
    waiting_for: Tuple[int, ...] = ()
    last: Optional[Dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The answer of ``postflight trace``; ``raw`` is all of its JSON."""

    verdict: Verdict
    findings: Tuple[Finding, ...]
    ranks: Tuple[RankState, ...]
    is_problem: bool
    raw: Dict[str, Any] = dataclasses.field(repr=False)


def _fields(kind: Any, given: Dict[str, Any]) -> Any:
    known = {}
    for field in dataclasses.fields(kind):
        if given.get(field.name) is not None:
            value = given[field.name]
            known[field.name] = tuple(value) if isinstance(value, list) else value
        elif (field.default is dataclasses.MISSING
              and field.default_factory is dataclasses.MISSING):
            known[field.name] = ""
    return kind(**known)


def diagnose(paths: Any = (), *, logs: Any = (), hosts: Any = None, stacks: Any = (),
             strict: bool = False) -> Diagnosis:
    """Says what happened to a job, from its dumps: files, folders or globs.

    Without dumps, the logs alone are looked at.

    >>> found = diagnose("tests/data/flight/nccl_tp_fsdp")
    >>> found.verdict.kind, found.verdict.culprits
    ('never_joined', (1,))
    """
    job = _job(paths, hosts, logs, stacks, True)
    raw = json.loads(text("postflight_job_verdict", job.value))
    problem = ctypes.c_int()
    call("postflight_job_is_problem", job.value, int(strict),
         ctypes.byref(problem))
    return Diagnosis(
        _fields(Verdict, raw["verdict"]),
        tuple(_fields(Finding, finding) for finding in raw["findings"]),
        tuple(_fields(RankState, rank) for rank in raw["ranks"]),
        bool(problem.value), raw)


# ---- entries as columns -----------------------------------------------------

_FORMATS = {0: ("i", "<i4"), 1: ("q", "<i8"), 2: ("d", "<f8"), 3: ("?", "?"),
            4: ("I", "<u4")}
_SIZES = {0: 4, 1: 8, 2: 8, 3: 1, 4: 4}
_TEXTS = 4


class Column(Sequence[Any]):
    """One field of all entries.

    ``data`` is a memoryview that numpy takes without a copy; of texts it has
    their places in ``categories``.
    """

    __slots__ = ("name", "kind", "data", "_texts", "_owner", "_categories")

    def __init__(self, name: str, kind: int, data: memoryview,
                 texts: Tuple[int, int], owner: Any) -> None:
        self.name = name
        self.kind = kind
        self.data = data
        self._texts = texts  # where they are, and how many
        self._owner = owner
        self._categories: Optional[List[str]] = None

    @property
    def categories(self) -> Optional[List[str]]:
        """The texts that ``data`` has the places of; None for numbers."""
        if self.kind == _TEXTS and self._categories is None:
            start, count = self._texts
            raw = ctypes.string_at(start, count * _STRING.size)
            self._categories = [
                ctypes.string_at(at, size).decode("utf-8", "surrogateescape")
                for at, size in _STRING.iter_unpack(raw)]
        return self._categories

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        value = self.data[place]
        categories = self.categories
        return value if categories is None else categories[value]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy
        raw = numpy.frombuffer(self.data, _FORMATS[self.kind][1])
        if self.categories is not None:
            raw = numpy.array(self.categories, dtype=object)[raw] \
                if len(self.categories) else raw.astype(object)
        return raw if dtype is None else raw.astype(dtype)

    def __repr__(self) -> str:
        return f"<column {self.name} of {len(self)}>"


class Entries:
    """All entries of a job, as columns: ``entries(path)["sequence"]``."""

    def __init__(self, columns: Dict[str, Column]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """How many entries there are."""
        return len(next(iter(self._columns.values())))

    def keys(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def to_pandas(self) -> Any:
        """A DataFrame, with texts as categories."""
        import numpy
        import pandas
        frame = {}
        for name, column in self._columns.items():
            raw = numpy.frombuffer(column.data, _FORMATS[column.kind][1])
            if column.categories is None:
                frame[name] = pandas.Series(raw)
            else:
                # Several numbers may stand for the same text.
                places: Dict[str, int] = {}
                codes = numpy.array([places.setdefault(one, len(places))
                                     for one in column.categories], "i8")
                frame[name] = pandas.Series(pandas.Categorical.from_codes(
                    codes[raw] if len(codes) else raw, list(places)))
        return pandas.DataFrame(frame)


def entries(paths: Any) -> Entries:
    """Every entry of the dumps of a job, as columns.

    >>> found = entries("tests/data/flight/nccl_tp_fsdp")
    >>> len(found) == len(found["operation"]), sorted(set(found["rank"]))
    (True, [0, 1, 2, 3])
    """
    job = _job(paths, None, (), (), False)
    owner = Handle("columns", "postflight_job_entries", job.value)
    lib = library()
    raw = list(_COLUMN.iter_unpack(ctypes.string_at(
        lib.postflight_columns_data(owner.value),
        lib.postflight_columns_count(owner.value) * _COLUMN.size)))
    # The data of all columns are one object's, which keeps the memory alive.
    begin = min(column[4] for column in raw)
    end = max(at + count * _SIZES[kind]
              for _, _, kind, _, at, count, _, _ in raw)
    memory = (ctypes.c_char * (end - begin)).from_address(begin)
    memory._owner = owner
    block = memoryview(memory).cast("B").toreadonly()
    columns = {}
    for name_at, name_size, kind, _, at, count, texts, text_count in raw:
        name = ctypes.string_at(name_at, name_size).decode()
        start = at - begin
        columns[name] = Column(
            name, kind,
            block[start:start + count * _SIZES[kind]].cast(_FORMATS[kind][0]),
            (texts, text_count), owner)
    return Entries(columns)


# ---- the reference's dictionaries -------------------------------------------


class _Plain(pickle.Unpickler):
    """Reads data, and refuses everything that would be imported."""

    def find_class(self, module: str, name: str) -> Any:
        raise Error(f"it would import {module}.{name}; a dump has only data",
                    Error.REFUSED)

    def persistent_load(self, pid: Any) -> Any:
        raise Error("it has a persistent id; a dump has only data",
                    Error.REFUSED)


def read_dump(prefix: str, filename: str) -> Dict[str, Any]:
    """One dump as the reference's read_dump returns it.

    Its rank is the number after ``prefix`` in the file's name. Nothing of the
    file is run; JSON dumps are read, too, and what the reference drops is kept.
    """
    name = os.path.basename(os.fspath(filename))
    rank = _rank_of(prefix, name)
    with open(filename, "rb") as file:
        dump = _content(file, os.fspath(filename))
    if not isinstance(dump, dict) or "entries" not in dump:
        raise Error(f"{filename} is not a flight-recorder dump: it has no "
                    "entries", Error.CORRUPT)
    result = {"host_name": f"host_rank{rank}", "rank": rank,
              "entries": dump["entries"], "version": dump.get("version", ""),
              "pg_config": dump.get("pg_config", {})}
    for key, value in dump.items():
        result.setdefault(key, value)
    return result


def _rank_of(prefix: str, name: str) -> int:
    _, found, rest = name.partition(prefix) if prefix else ("", "x", name)
    match = re.match(r"\d+", rest) if found else None
    if match is None:
        raise Error(f"{name} has no rank after '{prefix}'")
    return int(match.group())


def _content(file: Any, name: str) -> Any:
    front = file.peek(1)[:1]
    try:
        if front in (b"{", b"["):
            return json.load(file)
        return _Plain(file).load()
    except Error as error:
        raise Error(f"{name}: {error}", error.status) from None
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError,
            TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Error(f"{name}: it is truncated or damaged ({error}); diagnose() "
                    "and entries() read what is there",
                    Error.CORRUPT) from error


def read_dir(args: Any, prefix: Optional[str] = None
             ) -> Tuple[Dict[str, Dict[str, Any]], str]:
    """All dumps of a folder, by name, and their version.

    Takes the reference's arguments (with ``trace_dir`` and ``prefix``) or a
    folder. Dumps of the same name in different folders are kept apart.
    """
    if isinstance(args, (str, bytes, os.PathLike)):
        folder = os.fsdecode(os.fspath(args))
    else:
        folder = os.fsdecode(os.fspath(args.trace_dir))
        prefix = prefix if prefix is not None else args.prefix
    begun = time.monotonic()
    files = [(where, name) for where, _, names in os.walk(folder)
             for name in sorted(names)]
    if not files:
        raise Error(f"no dumps below {folder}", Error.IO)
    if prefix is None:
        prefix = _common_prefix([name for _, name in files])
    details: Dict[str, Dict[str, Any]] = {}
    version = ""
    for where, name in files:
        if not re.search(re.escape(prefix) + r"\d", name):
            continue
        path = os.path.join(where, name)
        dump = read_dump(prefix, path)
        version = version or str(dump["version"])
        details[name if name not in details
                else os.path.relpath(path, folder)] = dump
    if not details:
        raise Error(f"no file below {folder} has a rank after '{prefix}'")
    if not isinstance(args, (str, bytes, os.PathLike)) and getattr(
            args, "verbose", False):
        print(f"loaded {len(details)} files in "
              f"{time.monotonic() - begun:.3f}s")
    return details, version


def _common_prefix(names: List[str]) -> str:
    found: Dict[str, int] = {}
    for name in names:
        match = re.match(r"(.*?)(\d+)(\.[A-Za-z]\w*)*$", name)
        if match is not None:
            found[match.group(1)] = found.get(match.group(1), 0) + 1
    if not found:
        raise Error("no name of a file ends with a rank; give the prefix")
    most = max(found.values())
    best = [one for one, count in found.items() if count == most]
    if len(best) > 1:
        raise Error("the files have several prefixes "
                    f"({', '.join(sorted(best))}); give one")
    return best[0]
