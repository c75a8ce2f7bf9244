"""Files of torch.save, made without torch: stand-ins for its classes are pickled
by CPython itself. For what only a job of several ranks, or another framework,
would write."""

import copyreg
import io
import os
import pickle
import struct
import sys
import types
import zipfile

CLASSES = {"float32": "FloatStorage", "float16": "HalfStorage",
           "bfloat16": "BFloat16Storage", "float64": "DoubleStorage",
           "int64": "LongStorage", "int32": "IntStorage", "uint8": "ByteStorage"}
CODES = {"float32": "f", "float16": "e", "float64": "d", "int64": "q",
         "int32": "i", "uint8": "B", "bfloat16": "H"}
_known = {}


def named(path):
    """A class or function of any module, by its name."""
    if path not in _known:
        module, name = path.rsplit(".", 1)
        for i, c in enumerate(module + "."):
            if c == "." and module[:i] not in sys.modules:
                sys.modules[module[:i]] = types.ModuleType(module[:i])
        made = type(name, (), {"__module__": module, "__qualname__": name})
        setattr(sys.modules[module], name, made)
        _known[path] = made
    return _known[path]


class Call:
    """What a function gives, pickled as the call; `state` is for BUILD."""

    def __init__(self, function, *arguments, state=None):
        self.call = (named(function), arguments)
        self.state = state

    def __reduce__(self):
        return self.call if self.state is None else self.call + (self.state,)


def made(path, **attributes):
    """An object of a class, with these attributes."""
    thing = named(path)()
    thing.__dict__.update(attributes)
    return thing


class Storage:
    def __init__(self, dtype, contents):
        self.dtype, self.contents = dtype, contents


def tensor(dtype, shape, values, requires_grad=False):
    """A tensor of numbers (of bfloat16: of its bits)."""
    contents = struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)
    return view(Storage(dtype, contents), shape, requires_grad=requires_grad)


def view(storage, shape, offset=0, stride=None, requires_grad=False):
    if stride is None:
        stride = [1] * len(shape)
        for i in range(len(shape) - 1, 0, -1):
            stride[i - 1] = stride[i] * shape[i]
    made_tensor = Call("torch._utils._rebuild_tensor_v2", storage, offset,
                       tuple(shape), tuple(stride), requires_grad, {})
    made_tensor.dtype, made_tensor.shape = storage.dtype, tuple(shape)
    return made_tensor


def parameter(of):
    return Call("torch._utils._rebuild_parameter", of, True, {})


class _Pickler(pickle.Pickler):
    def __init__(self, file, protocol):
        super().__init__(file, protocol=protocol)
        self.storages = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        if value not in self.storages:
            self.storages.append(value)
        size = struct.calcsize("<" + CODES[value.dtype])
        return ("storage", named("torch." + CLASSES[value.dtype]),
                str(self.storages.index(value)), "cpu",
                len(value.contents) // size)


def save(path, thing, crc=True, protocol=2):
    """An archive as torch.save lays it out, but for the padding."""
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol)
    pickler.dump(thing)
    root = os.path.basename(path).rsplit(".", 1)[0]
    records = [("data.pkl", pickled.getvalue()), ("byteorder", b"little")]
    records += [("data/%d" % i, storage.contents)
                for i, storage in enumerate(pickler.storages)]
    records.append(("version", b"3\n"))
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records:
            archive.writestr(zipfile.ZipInfo(root + "/" + name), data)
    if not crc:
        _without_crcs(path)


def _without_crcs(path):
    """As torch writes when told not to compute them: all are 0."""
    with open(path, "rb") as file:
        contents = bytearray(file.read())
    for signature, place in ((b"PK\3\4", 14), (b"PK\1\2", 16)):
        at = contents.find(signature)
        while at >= 0:
            contents[at + place:at + place + 4] = bytes(4)
            at = contents.find(signature, at + 4)
    with open(path, "wb") as file:
        file.write(contents)


PLACEMENTS = "torch.distributed.tensor.placement_types."


def shard(dim):
    return made(PLACEMENTS + "Shard", dim=dim)


def strided_shard(dim, split_factor):
    return made(PLACEMENTS + "_StridedShard", dim=dim,
                split_factor=split_factor)


def replicate():
    return made(PLACEMENTS + "Replicate")


def partial():
    return made(PLACEMENTS + "Partial", reduce_op="sum")


def size(shape):
    return Call("torch.Size", tuple(shape))


def mesh(shape, rank, style="layout", **extra):
    """A DeviceMesh over the ranks from 0 on. `style`: as torch 2.11 pickles it
    ("layout"), as 2.4 does ("tensor"), or with nothing that says where the rank
    is but the tensor of ranks ("ranks")."""
    count = 1
    for length in shape:
        count *= length
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    coordinate = [rank // strides[i] % shape[i] for i in range(len(shape))]
    path = "torch.distributed.device_mesh.DeviceMesh"
    if style == "layout":
        return made(path, _device_type="cpu",
                    _layout=made("torch.distributed._mesh_layout._MeshLayout",
                                 shape=tuple(shape), stride=tuple(strides)),
                    _rank_map=tensor("int32", [count], range(count)),
                    _rank=rank, _coordinate_on_dim=tuple(coordinate), **extra)
    ranks = tensor("int64" if style == "ranks" else "int32", shape,
                   range(count))
    if style == "ranks":
        return made(path, device_type="cpu", mesh=ranks, **extra)
    return made(path, device_type="cuda", mesh=ranks, mesh_dim_names=None,
                _coordinate_on_dim=coordinate, **extra)


def dtensor(shape, local, device_mesh, placements, **spec):
    """Of this shape; `local` is the part of the rank."""
    stride = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        stride[i - 1] = stride[i] * shape[i]
    kind = named("torch.distributed.tensor.DTensor")
    layout = Call("torch.serialization._get_layout", "torch.strided")
    arguments = (kind, _dtype(local.dtype), tuple(shape), tuple(stride), 0,
                 layout, Call("torch.device", "cpu"), False)
    described = made("torch.distributed.tensor._dtensor_spec.DTensorSpec",
                     mesh=device_mesh, placements=tuple(placements), **spec)
    return Call("torch._tensor._rebuild_from_type_v2",
                named("torch._utils._rebuild_wrapper_subclass"), kind,
                arguments, (None, {"_local_tensor": local, "_spec": described}))


def sharded_tensor(shape, shards):
    """`shards` are (offsets, tensor) of this rank."""
    folder = "torch.distributed._shard.sharded_tensor."
    metadata = "torch.distributed._shard.metadata.ShardMetadata"
    local = [made(folder + "shard.Shard", tensor=part,
                  metadata=made(metadata, shard_offsets=list(offsets),
                                shard_sizes=list(part.shape),
                                placement="rank:0/cpu"))
             for offsets, part in shards]
    whole = made(folder + "metadata.ShardedTensorMetadata", shards_metadata=[],
                 size=size(shape))
    kind = named("torch.distributed._shard.sharded_tensor.api.ShardedTensor")
    # Its state is a tuple and not a dict.
    kind.__reduce__ = lambda thing: (copyreg.__newobj__, (kind,), thing.state)
    thing = kind()
    thing.state = (local, whole, None, None, None)
    return thing


class _Global:
    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name


def _dtype(name):
    torch = sys.modules.setdefault("torch", types.ModuleType("torch"))
    if not hasattr(torch, name):
        thing = _Global(name)
        setattr(torch, name, thing)
        type(thing).__module__ = "torch"
    return getattr(torch, name)
