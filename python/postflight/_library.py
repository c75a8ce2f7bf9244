"""The C library, and how its functions are called."""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
from typing import Any, Callable, List, Optional, Sequence, TypeVar

NAME = "libpostflight.so.0"


class Error(Exception):
    """What failed, as a sentence; ``status`` says which kind of failure."""

    IO, CORRUPT, UNSUPPORTED, REFUSED, USAGE, INTERRUPTED, NO_MEMORY = range(1, 8)

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(_printable(message))
        self.status = status


def _printable(message: str) -> str:
    """A message may quote a file: without what a terminal would act on."""
    return "".join(
        letter if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape").decode()
        for letter in message)


class String(ctypes.Structure):
    """A view of bytes that are the library's."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    def bytes(self) -> bytes:
        return ctypes.string_at(self.data, self.size) if self.size else b""

    def text(self) -> str:
        return self.bytes().decode("utf-8", "surrogateescape")


def _candidates() -> List[pathlib.Path]:
    here = pathlib.Path(__file__).resolve().parent
    given = os.environ.get("POSTFLIGHT_LIBRARY")
    if given:
        return [pathlib.Path(given)]
    return [
        here / "lib" / NAME,  # in the wheel
        here.parents[1] / "build" / "release" / NAME,  # in the source tree
        pathlib.Path(sys.prefix) / "lib" / NAME,
        pathlib.Path("/usr/local/lib") / NAME,
    ]


def _open() -> ctypes.CDLL:
    tried = _candidates()
    for path in tried:
        if path.exists():
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL(NAME)
    except OSError:
        raise Error(f"{NAME} was not found; install the wheel, or name the "
                    "library in POSTFLIGHT_LIBRARY", Error.IO) from None


_POINTERS = {
    "postflight_error_message": ctypes.c_char_p,
    "postflight_text_data": ctypes.c_void_p,
    "postflight_version": ctypes.c_char_p,
    "postflight_folder_path": ctypes.c_char_p,
    "postflight_plan_values": ctypes.c_void_p,
}
_SIZES = ("postflight_text_size", "postflight_checkpoint_tensor_count",
          "postflight_columns_count", "postflight_plan_count")

_lock = threading.Lock()
_library: Optional[ctypes.CDLL] = None


def library() -> Any:
    """The library, which is loaded when it is first needed."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                found = _open()
                for name, kind in _POINTERS.items():
                    getattr(found, name).restype = kind
                for name in _SIZES:
                    getattr(found, name).restype = ctypes.c_size_t
                if found.postflight_abi() != 1:
                    raise Error("the library is of another version than the "
                                "package", Error.UNSUPPORTED)
                _library = found
    return _library


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the interface, and raises what it reports."""
    lib = library()
    error = ctypes.c_void_p()
    status = getattr(lib, name)(*arguments, ctypes.byref(error))
    if status == 0:
        return
    message = lib.postflight_error_message(error).decode("utf-8",
                                                         "surrogateescape")
    lib.postflight_error_free(error)
    if status == Error.NO_MEMORY:
        raise MemoryError(message)
    raise Error(message, status)


def text(name: str, *arguments: Any) -> str:
    """What a function returns as a text."""
    lib = library()
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    try:
        return ctypes.string_at(lib.postflight_text_data(handle),
                                lib.postflight_text_size(handle)).decode()
    finally:
        lib.postflight_text_free(handle)


_Result = TypeVar("_Result")


def interruptible(work: Callable[[], _Result]) -> _Result:
    """Runs a long call so that Ctrl-C has its effect at once.

    The call runs in another thread, as Python handles signals only between two
    of its own instructions. After Ctrl-C it goes on there to its end, and keeps
    alive what it needs until then.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: List[Any] = []

    def run() -> None:
        try:
            outcome.extend((work(), None))
        except BaseException as error:
            outcome.extend((None, error))

    thread = threading.Thread(target=run, name="postflight", daemon=True)
    thread.start()
    thread.join()
    result, error = outcome
    if error is not None:
        try:
            raise error
        finally:
            del error, outcome
    return result


class Handle:
    """A handle of the library's, freed with this object."""

    def __init__(self, kind: str, name: str, *arguments: Any) -> None:
        self.value = ctypes.c_void_p()
        self._free = getattr(library(), f"postflight_{kind}_free")
        call(name, *arguments, ctypes.byref(self.value))

    def __del__(self) -> None:
        free, value = getattr(self, "_free", None), self.value
        if free is not None and value:
            self.value = ctypes.c_void_p()
            free(value)


def path_bytes(path: Any) -> bytes:
    """A path as the library takes it."""
    encoded = os.fsencode(os.fspath(path))
    if b"\0" in encoded:
        raise Error("a path contains a NUL byte")
    return encoded


def strings(texts: Sequence[Any]) -> Any:
    """Texts or paths as an array of C strings."""
    encoded = [path_bytes(one) for one in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def as_list(one_or_many: Any) -> List[Any]:
    """A path, or several, as a list."""
    if one_or_many is None:
        return []
    if isinstance(one_or_many, (str, bytes, os.PathLike)):
        return [one_or_many]
    return list(one_or_many)
