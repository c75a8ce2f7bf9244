"""Memory for tensors: torch's tensors, numpy's arrays, or plain bytes."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from ._library import Error

# numpy's names of dtypes; torch's are the keys. What numpy lacks is given as
# bytes of the same size.
_NUMPY = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8",
    "int32": "<i4", "int16": "<i2", "int8": "i1", "uint64": "<u8",
    "uint32": "<u4", "uint16": "<u2", "uint8": "u1", "bool": "?",
    "complex128": "<c16", "complex64": "<c8", "bfloat16": "V2",
}
_FORMATS = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i",
    "int16": "h", "int8": "b", "uint64": "Q", "uint32": "I", "uint16": "H",
    "uint8": "B", "bool": "?",
}


def torch() -> Any:
    """The module torch."""
    import importlib
    return importlib.import_module("torch")


def framework(wanted: str = "") -> str:
    """"torch", "numpy" or "bytes": what was asked for, or what is there."""
    if wanted in ("torch", "numpy", "bytes"):
        return wanted
    if wanted:
        raise Error(f"'{wanted}' is not a framework: give torch, numpy or bytes")
    for name in ("torch", "numpy"):
        if name in sys.modules or importlib.util.find_spec(name) is not None:
            return name
    return "bytes"


def numpy_or_bytes() -> str:
    """"numpy" where it is installed."""
    there = "numpy" in sys.modules or \
        importlib.util.find_spec("numpy") is not None
    return "numpy" if there else "bytes"


class Array:
    """A tensor where neither torch nor numpy is installed.

    ``bytes`` has its values in row-major order; ``tolist`` makes lists of them.
    """

    def __init__(self, dtype: str, shape: Tuple[int, ...],
                 data: memoryview) -> None:
        self.dtype = dtype
        self.shape = shape
        self.data = data

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    def tolist(self) -> Any:
        """Nested lists of numbers, where Python has such numbers."""
        letter = _FORMATS.get(self.dtype)
        if letter is None:
            raise Error(f"Python has no numbers like {self.dtype}; take its "
                        "bytes", Error.UNSUPPORTED)
        if letter == "e":
            import struct
            flat: Any = [one for one, in struct.iter_unpack("<e", self.data)]
        else:
            flat = self.data.cast(letter).tolist() if len(self.data) else []
        for size in reversed(self.shape[1:]):
            flat = [flat[at:at + size] for at in range(0, len(flat), size)] \
                if size else [[] for _ in range(max(1, self.shape[0]))]
        return flat if self.shape else flat[0]

    def __repr__(self) -> str:
        return f"Array({self.dtype}, {list(self.shape)})"


class Memory:
    """An array and the address of its bytes."""

    def __init__(self, value: Any, address: int) -> None:
        self.value = value
        self.address = address


def _torch_dtype(name: str) -> Any:
    dtype = getattr(torch(), name, None)
    if not isinstance(dtype, torch().dtype):
        raise Error(f"torch {torch().__version__} has no dtype {name}; read it "
                    "with framework='numpy', as bytes", Error.UNSUPPORTED)
    return dtype


def _numpy_dtype(name: str, shape: Tuple[int, ...], size: int) -> Any:
    import numpy
    known = _NUMPY.get(name)
    if known is None and re.fullmatch(r"[USmMV]\d+(\[\w+\])?", name):
        known = f"<{name}"
    if known is None:
        count = 1
        for one in shape:
            count *= one
        known = f"V{max(1, size // count)}" if count else "V1"
    return numpy.dtype(known)


def make(dtype: str, shape: Tuple[int, ...], size: int,
         wanted: str = "") -> Memory:
    """A new array of this dtype and shape, which takes `size` bytes."""
    kind = framework(wanted)
    if kind == "torch" and not _packed(shape, size):
        tensor = torch().empty(shape, dtype=_torch_dtype(dtype))
        _check(dtype, tensor.numel() * tensor.element_size(), size)
        return Memory(tensor, tensor.data_ptr())
    if kind == "numpy" and not _packed(shape, size):
        import numpy
        array = numpy.empty(shape, _numpy_dtype(dtype, shape, size))
        _check(dtype, array.nbytes, size)
        return Memory(array, array.ctypes.data)
    buffer = (ctypes.c_char * size)()
    return Memory(Array(dtype, shape, memoryview(buffer).cast("B")),
                  ctypes.addressof(buffer))


def _packed(shape: Tuple[int, ...], size: int) -> bool:
    """Whether several elements share a byte; those are given as bytes."""
    count = 1
    for one in shape:
        count *= one
    return count > 0 and size % count != 0 or count > size > 0


def _check(dtype: str, got: int, size: int) -> None:
    if got != size:
        raise Error(f"a tensor of {dtype} takes {size} bytes in the file, but "
                    f"{got} in memory", Error.UNSUPPORTED)


def view(memory: Any, offset: int, dtype: str, shape: Tuple[int, ...],
         size: int, kind: str) -> Optional[Memory]:
    """An array over a mapped file, which it keeps alive; None if it cannot be
    one, as its bytes are not where the processor wants them."""
    if kind == "torch":
        found = _torch_dtype(dtype)
        item = torch().empty((), dtype=found).element_size()
        if offset % item:
            return None
        flat = torch().frombuffer(memory, dtype=found, count=size // item,
                                  offset=offset)
        return Memory(flat.reshape(shape), flat.data_ptr())
    if kind == "numpy":
        import numpy
        found = _numpy_dtype(dtype, shape, size)
        if offset % max(1, found.alignment):
            return None
        flat = numpy.frombuffer(memory, found, size // found.itemsize, offset)
        return Memory(flat.reshape(shape), flat.ctypes.data)
    part = memoryview(memory)[offset:offset + size]
    return Memory(Array(dtype, shape, part), 0)


def meta(dtype: str, shape: Tuple[int, ...], kind: str) -> Any:
    """A tensor without bytes."""
    if kind == "torch":
        return torch().empty(shape, dtype=_torch_dtype(dtype), device="meta")
    return Array(dtype, shape, memoryview(b""))


def as_parameter(value: Any, parameter: bool, requires_grad: bool) -> Any:
    """A Parameter, or a tensor that requires grad, of a tensor."""
    if parameter:
        return torch().nn.Parameter(value, requires_grad=requires_grad)
    return value.detach().requires_grad_(requires_grad)


def moved(value: Any, device: str, kind: str) -> Any:
    """A tensor on its device; numpy has only one."""
    if kind != "torch" or device == "cpu":
        return value
    return value.to(device)


def size(value: Any) -> Any:
    """torch.Size, or a tuple."""
    if "torch" in sys.modules:
        return torch().Size(value)
    return tuple(value)


def device(value: Any) -> Any:
    """torch.device, or its text."""
    if "torch" in sys.modules:
        return torch().device(*value)
    return ":".join(str(part) for part in value)


def constant(name: str, shown: str) -> Any:
    """torch.float32 and its kin."""
    found = getattr(torch(), name, None) if "torch" in sys.modules else None
    return found if found is not None else shown


def mapped_device(map_location: Any) -> Callable[[str], str]:
    """What map_location says of a device."""
    if map_location is None:
        return lambda saved: saved
    if callable(map_location):
        return lambda saved: str(map_location(saved))
    if isinstance(map_location, dict):
        return lambda saved: str(map_location.get(saved, saved))
    return lambda saved: str(map_location)
