"""Transforms of streams, for torch.distributed.checkpoint and alone.

The classes have the interface of torch's _extensions, so that a job writes with
them and both sides read it.
"""

from __future__ import annotations

import abc
import ctypes
import io
import json
import os
from typing import IO, Any, ClassVar, Dict, List, Optional, Sequence, Type

from ._library import Error, Handle, call, library, path_bytes, strings, text

# Bytes of one call; takes some hundredths of a second.
_AT_ONCE = 4 << 20
_FED = 64 << 10


class Chain:
    """Transforms of the library, in the order of writing.

    >>> chain = Chain(["stream.zstd/1:level=9", "stream.rot13/1"])
    >>> chain.decode(chain.encode(b"abc"))
    b'abc'
    """

    def __init__(self, transforms: Sequence[str], *, key: Optional[str] = None,
                 plugins: Sequence[Any] = ()) -> None:
        registry = Handle("registry", "postflight_registry_new")
        for plugin in plugins:
            call("postflight_registry_load", registry.value, path_bytes(plugin))
        names = strings(list(transforms))
        self._handle = Handle("chain", "postflight_chain_new", registry.value,
                              names, ctypes.c_size_t(len(names)),
                              key.encode() if key else None)

    def descriptors(self) -> List[str]:
        """As a checkpoint stores them."""
        return json.loads(text("postflight_chain_descriptors",
                               self._handle.value))

    def writer(self, below: IO[bytes]) -> "Writer":
        """A file that encodes what is written and passes it to `below`."""
        return Writer(self, below)

    def reader(self, below: IO[bytes]) -> "Reader":
        """A file that decodes `below`."""
        return Reader(self, below)

    def encode(self, data: bytes) -> bytes:
        """All of it at once."""
        to = io.BytesIO()
        with self.writer(to) as writer:
            writer.write(data)
        return to.getvalue()

    def decode(self, data: bytes) -> bytes:
        """All of it at once."""
        return self.reader(io.BytesIO(data)).read() or b""


class Writer(io.RawIOBase):
    """See ``Chain.writer``. Closing ends the encoding and leaves `below` open."""

    def __init__(self, chain: Chain, below: IO[bytes]) -> None:
        super().__init__()
        self._below = below
        self._error: Optional[BaseException] = None
        self._position = 0
        self._handle: Optional[Handle] = Handle(
            "writer", "postflight_writer_new", chain._handle.value, None, None)

    def _call(self, name: str, *arguments: Any) -> None:
        """Encodes, and writes what that has made."""
        if self._handle is None:
            raise ValueError("the writer is closed")
        try:
            call(name, self._handle.value, *arguments)
            self._pass_on()
        except BaseException as error:
            self._error = error
            raise

    def _pass_on(self) -> None:
        assert self._handle is not None
        start, size = ctypes.c_void_p(), ctypes.c_size_t()
        library().postflight_writer_take(self._handle.value,
                                         ctypes.byref(start),
                                         ctypes.byref(size))
        made = ctypes.string_at(start, size.value) if size.value else b""
        at = 0
        while at < len(made):
            count = self._below.write(made[at:] if at else made)
            at += len(made) if count is None else count

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        # In parts, between which the handlers of signals run.
        for at in range(0, max(1, len(view)), _AT_ONCE):
            raw = bytes(view[at:at + _AT_ONCE])
            self._call("postflight_writer_write", raw,
                       ctypes.c_size_t(len(raw)))
            self._position += len(raw)
        return len(view)

    def flush(self) -> None:
        if self._handle is not None and not self.closed:
            self._call("postflight_writer_flush")
            self._below.flush()

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if self._handle is None:
            return
        try:
            if self._error is None:
                self._call("postflight_writer_finish")
        finally:
            self._handle = None
            super().close()


class Reader(io.RawIOBase):
    """See ``Chain.reader``. It seeks forwards, and back by starting again where
    `below` can."""

    def __init__(self, chain: Chain, below: IO[bytes]) -> None:
        super().__init__()
        self._chain = chain
        self._below = below
        self._error: Optional[BaseException] = None
        self._position = 0
        try:
            self._start: Optional[int] = below.tell() if below.seekable() \
                else None
        except (AttributeError, OSError):
            self._start = None
        self._open()

    def _open(self) -> None:
        self._handle: Optional[Handle] = Handle(
            "reader", "postflight_reader_new", self._chain._handle.value, None,
            None)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._start is not None

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> Optional[int]:
        if self._handle is None:
            raise ValueError("the reader is closed")
        view = memoryview(buffer).cast("B")[:_AT_ONCE]
        if not len(view):
            return 0
        memory = (ctypes.c_char * len(view)).from_buffer(view)
        count = ctypes.c_size_t()
        lib, handle = library(), self._handle
        while True:
            call("postflight_reader_read", handle.value, memory,
                 ctypes.c_size_t(len(view)), ctypes.byref(count))
            if count.value or not lib.postflight_reader_is_hungry(handle.value):
                break
            data = self._below.read(_FED)
            if data is None:
                return None
            call("postflight_reader_feed", handle.value, data,
                 ctypes.c_size_t(len(data)))
        self._position += count.value
        return count.value

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._start is None:
            raise io.UnsupportedOperation("the stream below cannot seek")
        if whence == io.SEEK_END:
            while self.read(1 << 16):
                pass
            offset += self._position
        elif whence == io.SEEK_CUR:
            offset += self._position
        if offset < 0:
            raise ValueError("a position cannot be negative")
        if offset < self._position:
            self._below.seek(self._start)
            self._open()
        while self._position < offset:
            if not self.read(min(1 << 16, offset - self._position)):
                break
        return self._position

    def close(self) -> None:
        self._handle = None
        super().close()


class Extension(abc.ABC):
    """What a checkpoint was written with, by name; as torch's Extension."""

    @staticmethod
    @abc.abstractmethod
    def registry_name() -> str:
        """The name in the registry: "stream.zstd"."""

    @staticmethod
    @abc.abstractmethod
    def from_descriptor(version: str) -> "Extension":
        """One of this version, or a ValueError."""

    @abc.abstractmethod
    def get_descriptor(self) -> str:
        """The name and version that a checkpoint stores."""


class StreamTransformExtension(Extension):
    """Base class for one's own: encodes and decodes files."""

    @abc.abstractmethod
    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A file that encodes what is written, and writes it to `output`."""

    @abc.abstractmethod
    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A file that decodes `input`."""


class _OfLibrary(StreamTransformExtension):
    """A transform of the library, under its descriptor."""

    NAME: ClassVar[str] = ""
    NEEDS_KEY: ClassVar[bool] = False

    def __init__(self, *, key: Optional[str] = None, **parameters: Any) -> None:
        if self.NEEDS_KEY and key is None:
            key = os.environ.get("POSTFLIGHT_KEY")
        given = ",".join(f"{name}={value}"
                         for name, value in parameters.items())
        descriptor = f"{self.NAME}/1"
        self._chain = Chain([f"{descriptor}:{given}" if given else descriptor],
                            key=key)

    @classmethod
    def registry_name(cls) -> str:
        return cls.NAME

    @classmethod
    def from_descriptor(cls, version: str) -> "_OfLibrary":
        if version.partition(".")[0] != "1":
            raise ValueError(f"{cls.NAME} of version '{version}' is not "
                             "supported, only 1")
        return cls()

    def get_descriptor(self) -> str:
        return f"{self.NAME}/1"

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        return self._chain.writer(output)  # type: ignore[return-value]

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        return self._chain.reader(input)  # type: ignore[return-value]


class Rot13Example(_OfLibrary):
    """The example of torch's documentation, which swaps the case of letters."""

    NAME = "stream.rot13"


class ZStandard(_OfLibrary):
    """zstd: ``ZStandard(level=9, threads=2)``."""

    NAME = "stream.zstd"


class Lz4(_OfLibrary):
    """lz4: ``Lz4()``."""

    NAME = "stream.lz4@postflight"


class Checksum(_OfLibrary):
    """A checksum of each block, which finds damage where it is."""

    NAME = "stream.checksum@postflight"


class Aead(_OfLibrary):
    """Authenticated encryption; the key is 64 hexadecimal digits."""

    NAME = "stream.aead@postflight"
    NEEDS_KEY = True


BUILT_IN: List[Type[_OfLibrary]] = [Rot13Example, ZStandard, Lz4, Checksum,
                                    Aead]


class ExtensionRegistry:
    """Makes extensions of descriptors, with the interface of torch's.

    >>> ExtensionRegistry().from_descriptor("stream.zstd/1").get_descriptor()
    'stream.zstd/1'
    """

    def __init__(self) -> None:
        self.extensions: Dict[str, Any] = {kind.registry_name(): kind
                                           for kind in BUILT_IN}

    def register(self, kind: Type[Any]) -> None:
        """Adds a class, or replaces the one of that name."""
        self.extensions[kind.registry_name()] = kind

    def from_descriptor(self, descriptor: str) -> Any:
        """One extension: name[@domain][/version]."""
        name, _, version = descriptor.partition("/")
        kind = self.extensions.get(name)
        if kind is None:
            raise ValueError(f"Unknown extension: {name}")
        return kind.from_descriptor(version)

    def from_descriptor_list(self, descriptors: Sequence[str]) -> List[Any]:
        """Several, in order."""
        return [self.from_descriptor(one) for one in descriptors]


def register_with_torch() -> None:
    """Makes torch's own registry know our transforms, so that its
    FileSystemReader reads what was written with them."""
    from torch.distributed.checkpoint import _extension
    original = _extension.ExtensionRegistry.__init__

    def extended(self: Any) -> None:
        original(self)
        for kind in BUILT_IN:
            self.extensions.setdefault(kind.registry_name(), kind)

    if not getattr(original, "_postflight", False):
        extended._postflight = True  # type: ignore[attr-defined]
        _extension.ExtensionRegistry.__init__ = extended
