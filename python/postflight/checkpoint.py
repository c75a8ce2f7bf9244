"""Checkpoints of every format, read without running anything in them."""

from __future__ import annotations

import collections
import collections.abc
import ctypes
import json
import mmap as _mmap
import os
import stat
import struct
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from . import arrays
from ._library import Error, Handle, String, call, context, library, \
    path_bytes, strings, text

DICT, LIST, TUPLE, SET, OBJECT, TENSOR, REFERENCE, VALUE = range(8)
ROOT, STRING_KEY, INTEGER_KEY, INDEX, ATTRIBUTE, OTHER_KEY = range(6)
PARAMETER, BUFFER, REQUIRES_GRAD, READABLE, HAS_PARTS, CONTIGUOUS, \
    SHAPE_UNKNOWN = (1 << bit for bit in range(7))
CHECK_CRC = 1

_NODE = struct.Struct("<IIQQqIIIIQQIIqdQQ")


class UnsafeError(Error):
    """A file that ``safe=True`` refuses, and why."""


class _OpenOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("rank", ctypes.c_uint32),
                ("has_rank", ctypes.c_uint32),
                ("plugins", ctypes.POINTER(ctypes.c_char_p)),
                ("plugin_count", ctypes.c_size_t), ("key", ctypes.c_char_p)]


class _Tensor(ctypes.Structure):
    _fields_ = [("dtype", String), ("device", String), ("layout", String),
                ("type", String), ("problem", String),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("stride", ctypes.POINTER(ctypes.c_int64)),
                ("dimensions", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("storage", ctypes.c_uint32), ("item_size", ctypes.c_uint32),
                ("offset", ctypes.c_uint64), ("elements", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64)]


class _Target(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("to", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class TensorInfo:
    """A tensor as the file describes it."""

    __slots__ = ("index", "dtype", "device", "layout", "type", "problem",
                 "shape", "stride", "flags", "storage", "offset", "bytes")

    def __init__(self, index: int, raw: _Tensor) -> None:
        self.index = index
        self.dtype = raw.dtype.text()
        self.device = raw.device.text()
        self.layout = raw.layout.text()
        self.type = raw.type.text()
        self.problem = raw.problem.text()
        self.shape = tuple(raw.shape[:raw.dimensions])
        self.stride = tuple(raw.stride[:raw.dimensions]) if raw.stride else ()
        self.flags = raw.flags
        self.storage = raw.storage
        self.offset = raw.offset
        self.bytes = raw.bytes

    @property
    def readable(self) -> bool:
        """Whether it has bytes, and they are there."""
        return bool(self.flags & READABLE)

    def same_view(self) -> Tuple[Any, ...]:
        """Equal for tensors that are the same view of the same storage."""
        return (self.storage, self.offset, self.dtype, self.shape, self.stride)

    def __repr__(self) -> str:
        return f"<{self.dtype} {list(self.shape)}>"


class Opaque:
    """An object of a class that is known by name only; nothing of it was run.

    ``items`` has what it consists of, ``value`` a text much like its repr.
    """

    def __init__(self, type: str, items: Optional[Dict[Any, Any]] = None,
                 value: str = "") -> None:
        self.type = type
        self.items = items if items is not None else {}
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.type}: {self.value or self.items}>"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Opaque) and self.type == other.type
                and self.items == other.items and self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class Node:
    """One node of the object tree; see ``Checkpoint.node``."""

    __slots__ = ("number", "kind", "key_kind", "_key", "key_number", "parent",
                 "end", "index", "children", "_type", "value_kind", "integer",
                 "floating", "_text")

    def __init__(self, number: int, fields: Tuple[Any, ...]) -> None:
        (self.kind, self.key_kind, key, key_size, self.key_number, self.parent,
         self.end, self.index, self.children, kind, kind_size, self.value_kind,
         _, self.integer, self.floating, start, size) = fields
        self.number = number
        self._key = (key, key_size)
        self._type = (kind, kind_size)
        self._text = (start, size)

    @property
    def key(self) -> Any:
        """The key or index by which it is reached from its parent."""
        if self.key_kind in (STRING_KEY, ATTRIBUTE):
            return _string(*self._key)
        if self.key_kind in (INTEGER_KEY, INDEX):
            return self.key_number
        if self.key_kind == OTHER_KEY:
            shown = _string(*self._key)
            key = _literal(shown)
            return key if isinstance(key, collections.abc.Hashable) else shown
        return None

    @property
    def type(self) -> str:
        return _string(*self._type)

    @property
    def text(self) -> bytes:
        return ctypes.string_at(*self._text) if self._text[1] else b""

    def value(self) -> Any:
        """The Python value of a node that is neither container nor tensor."""
        return _VALUES[self.value_kind](self)


def _string(start: int, size: int) -> str:
    if not size:
        return ""
    found = ctypes.string_at(start, size)
    try:
        return found.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return found.decode("utf-8", "surrogateescape")


def _literal(repr_text: str) -> Any:
    """Keys that are neither texts nor integers: tuples, floats, None."""
    import ast
    try:
        return ast.literal_eval(repr_text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return repr_text


def _other(node: Node) -> Any:
    """Values that a call makes: torch.Size([2]), 1j, PosixPath('/a')."""
    shown, kind = node.text.decode("utf-8", "replace"), node.type
    if kind in ("bytearray", "complex"):
        inside = _literal(shown[len(kind):])
        if kind == "bytearray" and isinstance(inside, bytes):
            return bytearray(inside)
        if kind == "complex" and isinstance(inside, tuple):
            return complex(*inside)
    if kind in ("torch.Size", "complex", "tuple", "frozenset", "bytes", "set",
                "slice", "range"):
        inside = shown
        if kind == "torch.Size":
            inside = shown[len("torch.Size("):-1]
        value = _literal(inside)
        if kind == "torch.Size" and isinstance(value, list):
            return arrays.size(value)
        if not isinstance(value, str):
            return value
    if kind == "torch.device":
        inside = _literal(f"[{shown[shown.find('(') + 1:-1]}]")
        if isinstance(inside, list):
            return arrays.device(inside)
    if shown.startswith("torch.") and "(" not in shown:
        return arrays.constant(shown[len("torch."):], shown)
    if kind.endswith("PosixPath"):
        import pathlib
        inside = _literal(shown[shown.find("(") + 1:-1])
        if isinstance(inside, str):
            return pathlib.PurePosixPath(inside)
    return Opaque(kind, {}, shown)


_VALUES: List[Callable[[Node], Any]] = [
    lambda node: None,
    lambda node: bool(node.integer),
    lambda node: node.integer,
    lambda node: int.from_bytes(node.text, "little", signed=True),
    lambda node: node.floating,
    lambda node: _string(*node._text),
    lambda node: node.text,
    lambda node: bytearray(node.text),
    _other,
]


class Checkpoint:
    """An open checkpoint: a file or folder of any format.

    Nothing in it is run, and no tensor is read before it is asked for.

    >>> checkpoint = Checkpoint("tests/data/ckpt/train_state.pt")
    >>> checkpoint.tensor(checkpoint.find('model.0.weight'))
    <float32 [8, 6]>
    """

    def __init__(self, path: Union[str, bytes, "os.PathLike[str]"], *,
                 rank: Optional[int] = None, plugins: Any = (),
                 key: Optional[str] = None) -> None:
        self._open(path, path_bytes(path), rank, plugins, key)

    def _open(self, name: Any, place: bytes, rank: Optional[int], plugins: Any,
              key: Optional[str]) -> None:
        self.path = os.fspath(name)
        options = _OpenOptions(ctypes.sizeof(_OpenOptions))
        if rank is not None:
            options.rank, options.has_rank = rank, 1
        files = strings(plugins)
        options.plugins = ctypes.cast(files, ctypes.POINTER(ctypes.c_char_p))
        options.plugin_count = len(files)
        options.key = key.encode() if key else None
        self._handle = Handle("checkpoint", "postflight_checkpoint_open",
                              context(), place, ctypes.byref(options))
        self._nodes: Optional[memoryview] = None
        self._descriptor: Optional[_Descriptor] = None

    @property
    def _value(self) -> ctypes.c_void_p:
        return self._handle.value

    @property
    def format(self) -> str:
        """What it was recognised as: torch_zip, safetensors, dcp, ..."""
        return library().postflight_checkpoint_format(self._value).decode()

    def list(self, all: bool = False) -> Dict[str, Any]:
        """The answer of ``postflight ckpt ls --json``."""
        return json.loads(text("postflight_checkpoint_list", self._value,
                               int(all)))

    def verify(self) -> Dict[str, Any]:
        """The answer of ``postflight ckpt verify --json``."""
        return json.loads(text("postflight_checkpoint_verify", self._value))

    def digest(self) -> Dict[str, Any]:
        """The answer of ``postflight ckpt digest --json``."""
        return json.loads(text("postflight_checkpoint_digest", self._value))

    def _all_nodes(self) -> memoryview:
        if self._nodes is None:
            start, count = ctypes.c_void_p(), ctypes.c_size_t()
            call("postflight_checkpoint_nodes", self._value,
                 ctypes.byref(start), ctypes.byref(count))
            raw = (ctypes.c_char * (count.value * _NODE.size)).from_address(
                start.value or 0)
            self._nodes = memoryview(raw).cast("B")
        return self._nodes

    def node(self, number: int) -> Node:
        """A node of the tree; 0 is the root."""
        nodes = self._all_nodes()
        if not 0 <= number < len(nodes) // _NODE.size:
            raise Error(f"node {number} does not exist")
        return Node(number, _NODE.unpack_from(nodes, number * _NODE.size))

    def children(self, node: Node) -> Iterator[Node]:
        """The nodes right below one."""
        at = node.number + 1
        while at < node.end:
            child = self.node(at)
            yield child
            at = child.end

    def resolved(self, node: Node) -> Node:
        """The node itself, or the one that it refers to."""
        return self.node(node.index) if node.kind == REFERENCE else node

    def path_of(self, node: int) -> str:
        """The path of a node as the program prints it."""
        return text("postflight_checkpoint_path", self._value,
                    ctypes.c_uint32(node))

    def find(self, path: str) -> int:
        """The index of the tensor with this path."""
        found = ctypes.c_uint32()
        call("postflight_checkpoint_find", self._value, path.encode(),
             ctypes.byref(found))
        node = self.node(found.value)
        if node.kind != TENSOR:
            raise Error(f"{path} is not a tensor")
        return node.index

    def tensor(self, index: int) -> TensorInfo:
        """What the file says of a tensor."""
        raw = _Tensor()
        call("postflight_checkpoint_tensor", self._value,
             ctypes.c_uint32(index), ctypes.byref(raw))
        return TensorInfo(index, raw)

    def read_into(self, index: int, address: int, size: int,
                  check_crc: bool = False) -> None:
        """Reads a tensor to memory, as the row-major bytes of its values."""
        call("postflight_tensor_read", self._value, ctypes.c_uint32(index),
             ctypes.c_uint32(CHECK_CRC if check_crc else 0),
             ctypes.c_void_p(address), ctypes.c_size_t(size))

    def read_all_into(self, targets: List[Tuple[int, int, int]],
                      check_crc: bool = False) -> None:
        """The same for many (index, address, size), on several threads."""
        raw = (_Target * len(targets))()
        for place, (index, address, length) in zip(raw, targets):
            place.index, place.to, place.size = index, address, length
        call("postflight_tensors_read", self._value, raw,
             ctypes.c_size_t(len(targets)),
             ctypes.c_uint32(CHECK_CRC if check_crc else 0))

    def read_slice(self, index: int, slice: str, framework: str = "",
                   check_crc: bool = False) -> Any:
        """A part of a tensor: "[0:128, :, 3]", as numpy understands it."""
        info = self.tensor(index)
        flags = ctypes.c_uint32(CHECK_CRC if check_crc else 0)
        shape = (ctypes.c_int64 * max(1, len(info.shape)))()
        dimensions = ctypes.c_uint32(len(info.shape))
        size = ctypes.c_size_t()
        arguments = (self._value, ctypes.c_uint32(index), slice.encode(), flags,
                     shape, ctypes.byref(dimensions))
        call("postflight_tensor_read_slice", *arguments, None,
             ctypes.byref(size))
        made = arrays.make(info.dtype, tuple(shape[:dimensions.value]),
                           size.value, framework)
        if size.value:
            dimensions.value = len(info.shape)
            call("postflight_tensor_read_slice", *arguments,
                 ctypes.c_void_p(made.address), ctypes.byref(size))
        return made.value

    def read(self, index: int, framework: str = "",
             check_crc: bool = False) -> Any:
        """A whole tensor, as a tensor of torch or an array of numpy."""
        info = self.tensor(index)
        made = arrays.make(info.dtype, info.shape, info.bytes, framework)
        if info.bytes:
            self.read_into(index, made.address, info.bytes, check_crc)
        elif info.problem:
            raise Error(info.problem, Error.CORRUPT)
        return made.value

    def place_of(self, index: int) -> Optional[Tuple[str, int]]:
        """The file and offset of a tensor's bytes, if they need no change."""
        path, offset = ctypes.c_void_p(), ctypes.c_uint64()
        lib = library()
        try:
            call("postflight_tensor_place", self._value, ctypes.c_uint32(index),
                 ctypes.byref(path), ctypes.byref(offset))
        except Error as error:
            if error.status == Error.UNSUPPORTED:
                return None
            raise
        try:
            raw = ctypes.string_at(lib.postflight_text_data(path),
                                   lib.postflight_text_size(path))
        finally:
            lib.postflight_text_free(path)
        return os.fsdecode(raw), offset.value


class Maker:
    """Makes Python objects of nodes: first want() them all, then read() their
    tensors, each once and in the order of the file, then make() them."""

    def __init__(self, checkpoint: Checkpoint, *, framework: str = "",
                 check_crc: bool = False, mmap: bool = False,
                 device: Optional[Callable[[str], str]] = None,
                 slices: Optional[Dict[str, str]] = None,
                 skip_unreadable: bool = False) -> None:
        self.checkpoint = checkpoint
        self.skip_unreadable = skip_unreadable
        self.framework = arrays.framework(framework)
        self.check_crc = check_crc
        self.mmap = mmap
        self.device = device or (lambda saved: "cpu")
        self.slices = dict(slices or {})
        self._targets: List[Tuple[int, int, int]] = []
        self._views: Dict[Any, Any] = {}
        self._tensors: Dict[int, Any] = {}
        self._pending: List[Tuple[int, Any, TensorInfo, str]] = []
        self._made: Dict[int, Any] = {}
        self._maps: Dict[str, Any] = {}

    def want(self, node: Node) -> None:
        """Everything below a node."""
        waiting = [node]
        while waiting:
            top = waiting.pop()
            for number in range(top.number, top.end):
                if number in self._tensors:
                    continue
                one = self.checkpoint.node(number)
                if one.kind == TENSOR:
                    self._want_tensor(one)
                elif one.kind == REFERENCE and one.index not in self._tensors:
                    self._tensors.setdefault(number, None)
                    waiting.append(self.checkpoint.node(one.index))

    def _want_tensor(self, node: Node) -> None:
        info = self.checkpoint.tensor(node.index)
        self._tensors[node.number] = None
        if info.flags & HAS_PARTS:
            return
        device = self.device(info.device)
        if device == "meta" or info.device == "meta":
            self._tensors[node.number] = arrays.meta(info.dtype, info.shape,
                                                     self.framework)
            return
        if not info.readable:
            problem = info.problem or "its bytes are not available"
            if self.skip_unreadable:
                self._tensors[node.number] = Opaque("unreadable", {}, problem)
                return
            raise Error(f"{self.checkpoint.path_of(node.number)}: {problem}",
                        Error.CORRUPT)
        if self.slices:
            slice = self.slices.get(self.checkpoint.path_of(node.number))
            if slice is not None:
                value = self.checkpoint.read_slice(node.index, slice,
                                                   self.framework,
                                                   self.check_crc)
                self._tensors[node.number] = arrays.moved(value, device,
                                                          self.framework)
                return
        view = (info.same_view(), info.flags, device)
        memory = self._views.get(view)
        if memory is None:
            memory = self._views[view] = self._memory(info)
        self._pending.append((node.number, memory, info, device))

    def _memory(self, info: TensorInfo) -> Any:
        if self.mmap and info.bytes:
            mapped = self._mapped(info)
            if mapped is not None:
                return mapped
        made = arrays.make(info.dtype, info.shape, info.bytes, self._kind(info))
        if info.bytes:
            self._targets.append((info.index, made.address, info.bytes))
        return made

    def _mapped(self, info: TensorInfo) -> Any:
        place = self.checkpoint.place_of(info.index)
        if place is None:
            return None
        path, offset = place
        memory = self._maps.get(path)
        if memory is None:
            with open(path, "rb") as file:
                # Private: what is written to a tensor stays in this process.
                memory = _mmap.mmap(file.fileno(), 0, access=_mmap.ACCESS_COPY)
            self._maps[path] = memory
        return arrays.view(memory, offset, info.dtype, info.shape, info.bytes,
                           self._kind(info))

    def _kind(self, info: TensorInfo) -> str:
        """Arrays that were numpy's become numpy's again."""
        if info.type.startswith("numpy."):
            return arrays.numpy_or_bytes()
        return self.framework

    def read(self) -> None:
        """Reads the tensors that are wanted."""
        targets, self._targets = self._targets, []
        self.checkpoint.read_all_into(targets, self.check_crc)
        done: Dict[int, Any] = {}
        for number, memory, info, device in self._pending:
            value = done.get(id(memory))
            if value is None:
                value = arrays.moved(memory.value, device, self._kind(info))
                if info.type == "numpy.generic" and hasattr(value, "item"):
                    value = value[()]
                if self._kind(info) == "torch" and info.flags & (
                        PARAMETER | REQUIRES_GRAD):
                    value = arrays.as_parameter(
                        value, bool(info.flags & PARAMETER),
                        bool(info.flags & REQUIRES_GRAD))
                done[id(memory)] = value
            self._tensors[number] = value
        self._pending = []

    def make(self, node: Node) -> Any:
        """A node and everything below it, which have been wanted and read."""
        # From the last to the first instead of by recursion: the trees of
        # hostile files are as deep as they like.
        for number in range(node.end - 1, node.number - 1, -1):
            if number not in self._made:
                self._made[number] = self._make_one(self.checkpoint.node(number))
        return self._settled(self._made[node.number])

    def _make_one(self, node: Node) -> Any:
        if node.kind == VALUE:
            return node.value()
        if node.kind == REFERENCE:
            return _Reference(node.index)
        if node.kind == TENSOR:
            tensor = self._tensors[node.number]
            if tensor is not None:
                return tensor
            info = self.checkpoint.tensor(node.index)
            return Opaque(info.type or info.layout,
                          {child.key: self._made[child.number]
                           for child in self.checkpoint.children(node)})
        children = list(self.checkpoint.children(node))
        items = [child for child in children if child.key_kind != ATTRIBUTE]
        kind = node.type.rpartition(".")[2]
        if node.kind == DICT:
            pairs = [(child.key, self._made[child.number]) for child in items]
            if kind == "defaultdict":
                # Which function made missing items is only a name.
                return collections.defaultdict(None, pairs)
            if kind == "Counter":
                return collections.Counter(dict(pairs))
            if kind != "OrderedDict":
                return dict(pairs)
            made = collections.OrderedDict(pairs)
            for child in children:
                if child.key_kind == ATTRIBUTE:
                    setattr(made, child.key, self._made[child.number])
            return made
        values = [self._made[child.number] for child in items]
        if node.kind == LIST:
            return values
        if node.kind == TUPLE:
            return arrays.size(values) if node.type == "torch.Size" \
                else tuple(values)
        if node.kind == SET:
            try:
                return set(values)
            except TypeError:
                return Opaque("set", dict(enumerate(values)))
        return Opaque(node.type, {child.key: self._made[child.number]
                                  for child in children})

    def _settled(self, made: Any) -> Any:
        """Puts what references stand for in their places."""
        if isinstance(made, _Reference):
            made = self._find(made)
        waiting, seen = [made], set()
        while waiting:
            one = waiting.pop()
            if isinstance(one, Opaque):
                one = one.items
            if id(one) in seen or not isinstance(one, (dict, list, tuple)):
                continue
            seen.add(id(one))
            if isinstance(one, tuple):
                waiting.extend(one)
                continue
            pairs = one.items() if isinstance(one, dict) else enumerate(one)
            for key, value in list(pairs):
                if isinstance(value, _Reference):
                    value = one[key] = self._find(value)
                elif isinstance(value, tuple):
                    one[key] = value = self._settled_tuple(value)
                waiting.append(value)
        return made

    def _settled_tuple(self, values: Tuple[Any, ...]) -> Tuple[Any, ...]:
        if not any(isinstance(value, _Reference) for value in values):
            return values
        return tuple(self._find(value) if isinstance(value, _Reference)
                     else value for value in values)

    def _find(self, reference: _Reference) -> Any:
        passed = set()
        value: Any = reference
        while isinstance(value, _Reference):
            if value.number in passed:
                return None
            passed.add(value.number)
            if value.number not in self._made:
                node = self.checkpoint.node(value.number)
                for number in range(node.end - 1, node.number - 1, -1):
                    if number not in self._made:
                        self._made[number] = self._make_one(
                            self.checkpoint.node(number))
            value = self._made[value.number]
        return value


class _Reference:
    def __init__(self, number: int) -> None:
        self.number = number


def judge(path: Any) -> Tuple[bool, Dict[str, Any]]:
    """Whether `postflight pickle` calls a file SAFE, and its answer."""
    safe, lib = ctypes.c_int(), library()
    handle = ctypes.c_void_p()
    call("postflight_pickle_inspect", context(), path_bytes(path),
         ctypes.byref(safe), ctypes.byref(handle))
    try:
        raw = ctypes.string_at(lib.postflight_text_data(handle),
                               lib.postflight_text_size(handle))
    finally:
        lib.postflight_text_free(handle)
    return bool(safe.value), json.loads(raw)


def _refuse(name: Any, answer: Dict[str, Any]) -> None:
    verdict = answer.get("verdict", {})
    reasons = [reason.get("message") or reason.get("what") or ""
               for reason in verdict.get("reasons", [])]
    why = "; ".join(reason for reason in reasons[:3] if reason)
    raise UnsafeError(
        f"{os.fsdecode(name)} is {verdict.get('name', 'not SAFE')}"
        f"{': ' + why if why else ''}; see postflight pickle, or give "
        "safe=False, which runs nothing either", Error.REFUSED)


def _judge_part(file: str) -> None:
    try:
        is_safe, answer = judge(file)
    except Error as error:
        if os.path.getsize(file) == 0:
            return
        raise UnsafeError(
            f"{error}: it cannot be judged, as transforms hide what is in it, "
            "or it is damaged; give safe=False, which runs nothing either",
            Error.REFUSED) from None
    if not is_safe:
        _refuse(file, answer)


def _pickle_files(folder: str) -> List[str]:
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and (
                name.endswith((".pt", ".pth", ".bin", ".distcp", ".pkl"))
                or name.endswith(".metadata")):
            found.append(path)
    return found


def open_checkpoint(path: Any, *, safe: bool = True, rank: Optional[int] = None,
                    plugins: Any = (), key: Optional[str] = None) -> Checkpoint:
    """Opens a checkpoint; a file is judged and opened by one descriptor."""
    name = os.fspath(path)
    made = Checkpoint.__new__(Checkpoint)
    if os.path.isdir(name):
        if safe:
            for file in _pickle_files(os.fsdecode(name)):
                _judge_part(file)
        made._open(name, path_bytes(name), rank, plugins, key)
        return made
    # What is judged is what is read, even if another file gets its name.
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Error(f"{os.fsdecode(name)} is not a regular file", Error.IO)
        place = f"/proc/self/fd/{descriptor}"
        try:
            judged = safe and not _looks_like_safetensors(descriptor)
            if judged:
                _judge_file(name, place)
            made._open(name, place.encode(), rank, plugins, key)
            # A file may look like several formats.
            if safe and not judged and made.format != "safetensors":
                _judge_file(name, place)
        except Error as error:
            raise type(error)(str(error).replace(place, os.fsdecode(name)),
                              error.status) from None
    except BaseException:
        os.close(descriptor)
        raise
    made._descriptor = _Descriptor(descriptor)
    return made


def _judge_file(name: Any, place: str) -> None:
    is_safe, answer = judge(place)
    if not is_safe:
        _refuse(name, answer)


def _looks_like_safetensors(descriptor: int) -> bool:
    """Such a file has no pickles."""
    front = os.pread(descriptor, 9, 0)
    return len(front) == 9 and front[8:9] == b"{" and int.from_bytes(
        front[:8], "little") <= 100_000_000


class _Descriptor:
    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


def load(path: Union[str, bytes, "os.PathLike[str]"], *, keys: Any = None,
         slices: Optional[Dict[str, str]] = None, mmap: bool = False,
         safe: bool = True, map_location: Any = "cpu", framework: str = "",
         check_crc: bool = False, skip_unreadable: bool = False,
         rank: Optional[int] = None, plugins: Any = (),
         key: Optional[str] = None) -> Any:
    """Loads a checkpoint of any format, without running anything in it.

    Tensors are torch's where torch is installed, else numpy's, else Arrays;
    `framework` decides otherwise. With `safe`, the default, a file that
    `postflight pickle` does not call SAFE is refused; without, objects of
    unknown classes are Opaque. `keys` are globs over the paths that
    `postflight ckpt ls` shows, and `slices` maps paths to parts of tensors; with
    either, the result is a dict by path. With `skip_unreadable`, tensors that are
    missing in a truncated file are Opaque instead of an error. With `mmap`, tensors are views of the
    file where its bytes need no conversion; what is written to them stays in
    this process.

    >>> load("tests/data/ckpt/train_state.pt")["epoch"]
    3
    """
    checkpoint = open_checkpoint(path, safe=safe, rank=rank, plugins=plugins,
                                 key=key)
    maker = Maker(checkpoint, framework=framework, check_crc=check_crc,
                  mmap=mmap, device=arrays.mapped_device(map_location),
                  slices=slices, skip_unreadable=skip_unreadable)
    if keys is None and not slices:
        root = checkpoint.node(0)
        maker.want(root)
        maker.read()
        return maker.make(root)
    chosen = _chosen(checkpoint, keys, slices)
    for node in chosen.values():
        maker.want(node)
    maker.read()
    return {path: maker.make(node) for path, node in chosen.items()}


def _chosen(checkpoint: Checkpoint, keys: Any,
            slices: Optional[Dict[str, str]]) -> Dict[str, Node]:
    import fnmatch
    from ._library import as_list
    globs = [str(one) for one in as_list(keys)]
    chosen: Dict[str, Node] = {}
    for glob in list(slices or {}) + globs:
        found = ctypes.c_uint32()
        try:
            call("postflight_checkpoint_find", checkpoint._value, glob.encode(),
                 ctypes.byref(found))
        except Error:
            if any(letter in glob for letter in "*?["):
                continue
            raise
        chosen[glob] = checkpoint.node(found.value)
    patterns = [glob for glob in globs if glob not in chosen]
    if not patterns:
        return chosen
    matched = set()
    root = checkpoint.node(0)
    for number in range(root.end):
        node = checkpoint.node(number)
        if node.kind not in (TENSOR, VALUE):
            continue
        path = checkpoint.path_of(number)
        for pattern in patterns:
            if fnmatch.fnmatchcase(path, pattern):
                chosen[path] = node
                matched.add(pattern)
    for pattern in patterns:
        if pattern not in matched:
            raise Error(f"nothing matches '{pattern}'")
    return chosen
