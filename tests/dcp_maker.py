"""Distributed checkpoints as torch writes them, made without torch: stand-ins
for its classes are pickled by CPython itself."""

import io
import pickle
import struct
import sys
import types
import zipfile

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"


def _module(name):
    for i, c in enumerate(name + "."):
        if c == ".":
            sys.modules.setdefault(name[:i], types.ModuleType(name[:i]))
    return sys.modules[name]


def _plain_class(module, name):
    made = type(name, (), {"__module__": module})
    setattr(_module(module), name, made)
    return made


class Size(tuple):
    def __reduce__(self):
        return Size, (tuple(self),)


class _Named:
    """Pickled as a global of torch."""

    __module__ = "torch"

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name


def _function(module, name):
    def made(*arguments):
        return (name, arguments)

    made.__module__, made.__name__, made.__qualname__ = module, name, name
    setattr(_module(module), name, made)
    return made


class _Result:
    """What a function gave, pickled as the call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class TensorProperties:
    """Its state is a tuple and not a dict."""

    def __getstate__(self):
        return (FLOAT32, STRIDED, False, CONTIGUOUS, False)

    def __setstate__(self, state):
        self.state = state


_torch = _module("torch")
Size.__module__ = "torch"
_torch.Size = Size
FLOAT32 = _torch.float32 = _Named("float32")
STRIDED = _Result(_function("torch.serialization", "_get_layout"),
                  "torch.strided")
CONTIGUOUS = _Result(_function(METADATA, "_MEM_FORMAT_ENCODING"), 0)
TensorProperties.__module__ = METADATA
_module(METADATA).TensorProperties = TensorProperties
Metadata = _plain_class(METADATA, "Metadata")
TensorStorageMetadata = _plain_class(METADATA, "TensorStorageMetadata")
ChunkStorageMetadata = _plain_class(METADATA, "ChunkStorageMetadata")
MetadataIndex = _plain_class(METADATA, "MetadataIndex")
StorageInfo = _plain_class(FILESYSTEM, "_StorageInfo")
_rebuild = _function("torch._utils", "_rebuild_tensor_v2")
FloatStorage = _plain_class("torch", "FloatStorage")


def _filled(made, **attributes):
    made.__dict__.update(attributes)
    return made


class Chunk:
    """A part of a tensor, and where its item lies."""

    def __init__(self, offsets, sizes, file, offset, length, transforms=None):
        self.offsets, self.sizes = Size(offsets), Size(sizes)
        self.file, self.offset, self.length = file, offset, length
        self.transforms = transforms


def metadata(tensors):
    """The bytes of .metadata: `tensors` are (name, size, chunks)."""
    entries = {}
    places = {}
    planner = {}
    for name, size, chunks in tensors:
        entries[name] = _filled(
            TensorStorageMetadata(),
            properties=TensorProperties(), size=Size(size),
            chunks=[_filled(ChunkStorageMetadata(), offsets=chunk.offsets,
                            sizes=chunk.sizes) for chunk in chunks])
        planner[name] = tuple(name.split("."))
        for index, chunk in enumerate(chunks):
            key = _filled(MetadataIndex(), fqn=name, offset=chunk.offsets,
                          index=index)
            places[key] = _filled(StorageInfo(), relative_path=chunk.file,
                                  offset=chunk.offset, length=chunk.length)
            if chunk.transforms is not None:
                places[key].transform_descriptors = chunk.transforms
    return pickle.dumps(
        _filled(Metadata(), state_dict_metadata=entries, planner_data=planner,
                storage_data=places, storage_meta=None, version="1.0.0"),
        protocol=4)


class _ItemPickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, _Storage) else None


class _Storage:
    def __init__(self, count):
        self.id = ("storage", FloatStorage, "0", "cpu", count)


def item(shape, contents):
    """The archive of a tensor of float32."""
    stride = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        stride[i - 1] = stride[i] * shape[i]
    pickled = io.BytesIO()
    _ItemPickler(pickled, protocol=2).dump(
        _Result(_rebuild, _Storage(len(contents) // 4), 0, tuple(shape),
                tuple(stride), False, {}))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zip_file:
        for name, data in (("data.pkl", pickled.getvalue()),
                           ("byteorder", b"little"), ("data/0", contents),
                           ("version", b"3\n")):
            zip_file.writestr("archive/" + name, data)
    return archive.getvalue()


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)
