"""The C library, and how its functions are called."""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
from typing import Any, Generator, List, Optional, Sequence

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
    "postflight_columns_data": ctypes.c_void_p,
    "postflight_checkpoint_format": ctypes.c_char_p,
}
_SIZES = ("postflight_text_size", "postflight_checkpoint_tensor_count",
          "postflight_columns_count", "postflight_plan_count")

_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


# Another thread may have held it.
os.register_at_fork(after_in_child=_after_fork)
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
    if status == Error.INTERRUPTED and _raised:
        raised = _raised.copy()
        _raised.clear()
        raise raised[-1]
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


# What handlers of signals have raised during a call; call() raises it.
_raised: List[BaseException] = []


def _keep(error: BaseException) -> None:
    """Without the frame of _signals() in its traceback: those who clear the
    frames of a traceback would end it."""
    trace = error.__traceback__
    _raised.append(error.with_traceback(trace.tb_next if trace else None))


def _signals() -> Generator[int, Any, None]:
    """Runs the pending handlers of signals; 1 if one of them has raised.

    They run where a frame goes on. A function would go on before its first
    try, and what is raised there is lost; a generator goes on inside of it.
    """
    answer = 0
    while True:
        try:
            try:
                while True:
                    yield answer
                    answer = 0
            except GeneratorExit:
                return
            except BaseException as error:
                _keep(error)
                answer = 1
        except BaseException as error:  # of a second signal
            _keep(error)
            answer = 1


_asking = _signals()
next(_asking)
_ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_asking.send)
_context: Optional[Handle] = None


def context() -> ctypes.c_void_p:
    """What calls share: long ones let the handlers of signals run, and end if
    one raises, as that of Ctrl-C does."""
    global _context
    if _context is None:
        made = Handle("context", "postflight_context_new")
        library().postflight_context_set_interrupt(made.value, _ASK, None)
        _context = made
    return _context.value


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
