#include "pickle/trust.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace postflight {
namespace {

constexpr auto kBuiltins = {
    "bool",      "bytearray", "bytes", "complex", "dict",    "float",
    "frozenset", "int",       "list",  "long",    "object",  "range",
    "set",       "slice",     "str",   "tuple",   "unicode", "xrange",
};
constexpr auto kPaths = {"Path",          "PosixPath",   "PurePath",
                         "PurePosixPath", "WindowsPath", "PureWindowsPath"};
constexpr auto kReconstructors = {"_reconstructor", "__newobj__",
                                  "__newobj_ex__"};
constexpr auto kArrays = {"_reconstruct", "scalar"};
constexpr auto kRandomStates = {"__randomstate_ctor", "__generator_ctor",
                                "__bit_generator_ctor"};

bool among(std::string_view name,
           const std::initializer_list<const char*>& names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_plain(std::string_view module, std::string_view name) {
  if (module == "builtins" || module == "__builtin__")
    return among(name, kBuiltins);
  if (module == "collections")
    return among(name, {"OrderedDict", "Counter", "defaultdict", "deque"});
  if (module == "copyreg" || module == "copy_reg")
    return among(name, kReconstructors);
  if (module == "pathlib" || module == "pathlib._local")
    return among(name, kPaths);
  if (module == "datetime")
    return among(name, {"date", "datetime", "time", "timedelta", "timezone"});
  if (module == "numpy")
    return among(name, {"dtype", "ndarray"});
  if (module == "numpy.core.multiarray" || module == "numpy._core.multiarray")
    return among(name, kArrays);
  if (module == "numpy.core.numeric" || module == "numpy._core.numeric")
    return name == "_frombuffer";
  if (module == "numpy.random._pickle")
    return among(name, kRandomStates);
  if (module == "numpy.dtypes")
    return name.ends_with("DType");
  return (module == "_codecs" && name == "encode") ||
         (module == "decimal" && name == "Decimal") ||
         (module == "fractions" && name == "Fraction") ||
         (module == "uuid" && among(name, {"UUID", "SafeUUID"})) ||
         (module == "array" && among(name, {"array", "_array_reconstructor"}));
}

constexpr auto kTypes = {
    "Size",
    "Tensor",
    "device",
    "dtype",
    "memory_format",
    "layout",
    // dtypes
    "float64",
    "double",
    "float32",
    "float",
    "float16",
    "half",
    "bfloat16",
    "int64",
    "long",
    "int32",
    "int",
    "int16",
    "short",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex32",
    "chalf",
    "complex64",
    "cfloat",
    "complex128",
    "cdouble",
    "qint8",
    "qint32",
    "quint8",
    "quint4x2",
    "quint2x4",
    "bits8",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
    // schemes of quantization
    "per_tensor_affine",
    "per_channel_affine",
    "per_tensor_symmetric",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
};
constexpr auto kStorages = {
    "DoubleStorage",   "FloatStorage",         "HalfStorage",
    "BFloat16Storage", "LongStorage",          "IntStorage",
    "ShortStorage",    "CharStorage",          "ByteStorage",
    "BoolStorage",     "ComplexDoubleStorage", "ComplexFloatStorage",
    "QInt8Storage",    "QInt32Storage",        "QUInt8Storage",
    "QUInt4x2Storage", "QUInt2x4Storage",      "UntypedStorage",
    "TypedStorage",
};
constexpr auto kRebuilders = {
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_sparse_csr_tensor",
    "_rebuild_qtensor",
    "_rebuild_nested_tensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_xla_tensor",
    "_rebuild_wrapper_subclass",
};
constexpr auto kTypeRebuilders = {"_rebuild_from_type",
                                  "_rebuild_from_type_v2"};
constexpr auto kScriptBuilders = {"build_intlist",        "build_tensorlist",
                                  "build_doublelist",     "build_boollist",
                                  "build_tensor_from_id", "restore_type_tag"};

// The records of distributed tensors and checkpoints: data classes whose state
// is set from what the pickle holds.
constexpr std::array kRecordModules = {
    std::string_view("torch.distributed._mesh_layout"),
    std::string_view("torch.distributed._shard.metadata"),
    std::string_view("torch.distributed._shard.sharded_tensor.api"),
    std::string_view("torch.distributed._shard.sharded_tensor.metadata"),
    std::string_view("torch.distributed._shard.sharded_tensor.shard"),
    std::string_view("torch.distributed._tensor.api"),
    std::string_view("torch.distributed._tensor.placement_types"),
    std::string_view("torch.distributed.checkpoint.filesystem"),
    std::string_view("torch.distributed.checkpoint.metadata"),
    std::string_view("torch.distributed.device_mesh"),
    std::string_view("torch.distributed.tensor"),
    std::string_view("torch.distributed.tensor._dtensor_spec"),
    std::string_view("torch.distributed.tensor.placement_types"),
};
constexpr auto kRecords = {
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
    "_StorageInfo",
    "_MEM_FORMAT_ENCODING",
    "MEM_FORMAT_ENCODING",
    "ShardMetadata",
    "ShardedTensorMetadata",
    "ShardedTensor",
    "Shard",
    "DTensor",
    "DTensorSpec",
    "TensorMeta",
    "ShardOrderEntry",
    "DeviceMesh",
    "_MeshLayout",
    "Replicate",
    "Partial",
    "_Partial",
    "_StridedShard",
};

bool is_torch(std::string_view module, std::string_view name) {
  if (module == "torch")
    return among(name, kTypes) || among(name, kStorages);
  if (module == "torch.cuda" || module == "torch.storage")
    return among(name, kStorages);
  if (module == "torch._utils")
    return among(name, kRebuilders);
  if (module == "torch._tensor" || module == "torch.tensor")
    return among(name, kTypeRebuilders);
  if (module == "torch.jit._pickle")
    return among(name, kScriptBuilders);
  if (module == "torch.nn.parameter")
    return among(name, {"Parameter", "Buffer"});
  if (module == "torch.nested._internal.nested_tensor")
    return among(name, {"_rebuild_njt", "NestedTensor"});
  // Types of a TorchScript archive: torch's C++ reader takes them from the
  // archive itself, and Python has no such module to import.
  if (module.starts_with("__torch__"))
    return true;
  return (module == "torch.serialization" && name == "_get_layout") ||
         (module == "torch._dynamo.decorators" && name == "_DimRange") ||
         (std::ranges::find(kRecordModules, module) != kRecordModules.end() &&
          among(name, kRecords));
}

struct Danger {
  std::string_view module;  // and everything below it
  std::string_view reason;
};

constexpr std::string_view kRunsPrograms = "runs programs";
constexpr std::string_view kEvaluates = "evaluates Python source";
constexpr std::string_view kTouchesFiles = "reads, writes or deletes files";
constexpr std::string_view kNetwork = "talks to the network";
constexpr std::string_view kReaches = "reaches any function by its name";
constexpr std::string_view kLoadsPickles = "loads another pickle";
constexpr std::string_view kNativeCode = "runs native code";

constexpr std::array kDangerousModules = {
    Danger{"os", kRunsPrograms},
    Danger{"posix", kRunsPrograms},
    Danger{"nt", kRunsPrograms},
    Danger{"subprocess", kRunsPrograms},
    Danger{"_posixsubprocess", kRunsPrograms},
    Danger{"commands", kRunsPrograms},
    Danger{"popen2", kRunsPrograms},
    Danger{"pty", kRunsPrograms},
    Danger{"multiprocessing", kRunsPrograms},
    Danger{"asyncio", kRunsPrograms},
    Danger{"webbrowser", kRunsPrograms},
    Danger{"pip", kRunsPrograms},
    Danger{"runpy", kEvaluates},
    Danger{"code", kEvaluates},
    Danger{"codeop", kEvaluates},
    Danger{"timeit", kEvaluates},
    Danger{"pdb", kEvaluates},
    Danger{"bdb", kEvaluates},
    Danger{"trace", kEvaluates},
    Danger{"doctest", kEvaluates},
    Danger{"profile", kEvaluates},
    Danger{"cProfile", kEvaluates},
    Danger{"idlelib", kEvaluates},
    Danger{"lib2to3", kEvaluates},
    Danger{"types", kEvaluates},
    Danger{"numpy.testing", kEvaluates},
    Danger{"importlib", kReaches},
    Danger{"imp", kReaches},
    Danger{"pkgutil", kReaches},
    Danger{"pydoc", kReaches},
    Danger{"operator", kReaches},
    Danger{"_operator", kReaches},
    Danger{"functools", kReaches},
    Danger{"_functools", kReaches},
    Danger{"sys", kReaches},
    Danger{"shutil", kTouchesFiles},
    Danger{"io", kTouchesFiles},
    Danger{"_io", kTouchesFiles},
    Danger{"tempfile", kTouchesFiles},
    Danger{"fileinput", kTouchesFiles},
    Danger{"socket", kNetwork},
    Danger{"_socket", kNetwork},
    Danger{"ssl", kNetwork},
    Danger{"http", kNetwork},
    Danger{"urllib", kNetwork},
    Danger{"urllib2", kNetwork},
    Danger{"ftplib", kNetwork},
    Danger{"smtplib", kNetwork},
    Danger{"requests", kNetwork},
    Danger{"aiohttp", kNetwork},
    Danger{"httplib", kNetwork},
    Danger{"pickle", kLoadsPickles},
    Danger{"_pickle", kLoadsPickles},
    Danger{"cPickle", kLoadsPickles},
    Danger{"dill", kLoadsPickles},
    Danger{"cloudpickle", kLoadsPickles},
    Danger{"joblib", kLoadsPickles},
    Danger{"marshal", kLoadsPickles},
    Danger{"shelve", kLoadsPickles},
    Danger{"ctypes", kNativeCode},
    Danger{"_ctypes", kNativeCode},
    Danger{"cffi", kNativeCode},
    Danger{"torch.hub", kEvaluates},
    Danger{"torch.utils.cpp_extension", kNativeCode},
    Danger{"torch.ops", kNativeCode},
};

constexpr auto kEvaluators = {"eval", "exec", "execfile", "compile"};
constexpr auto kReachers = {"getattr", "setattr", "delattr", "__import__",
                            "globals", "locals",  "vars",    "apply",
                            "map",     "filter",  "reduce"};
constexpr auto kFileOpeners = {"open", "file", "input", "raw_input",
                               "breakpoint"};

std::string_view danger(std::string_view module, std::string_view name) {
  if (module == "builtins" || module == "__builtin__") {
    if (among(name, kEvaluators))
      return kEvaluates;
    if (among(name, kReachers))
      return kReaches;
    return among(name, kFileOpeners) ? kTouchesFiles : std::string_view();
  }
  if ((module == "torch.storage" && name == "_load_from_bytes") ||
      ((module == "torch" || module == "torch.serialization" ||
        module == "torch.jit") &&
       name == "load") ||
      (module == "numpy" && name == "load"))
    return kLoadsPickles;
  for (const Danger& known : kDangerousModules)
    if (module == known.module || (module.starts_with(known.module) &&
                                   module[known.module.size()] == '.'))
      return known.reason;
  return {};
}

}  // namespace

std::string_view trust_name(Trust trust) {
  switch (trust) {
    case Trust::kPlain:
      return "plain";
    case Trust::kTorch:
      return "torch";
    case Trust::kUnknown:
      return "unknown";
    case Trust::kDangerous:
      return "dangerous";
  }
  return "";
}

Judgement judge(const Global& global) {
  if (const std::string_view reason = danger(global.module, global.name);
      !reason.empty())
    return {Trust::kDangerous, reason};
  if (is_plain(global.module, global.name))
    return {Trust::kPlain, {}};
  if (is_torch(global.module, global.name))
    return {Trust::kTorch, {}};
  return {Trust::kUnknown, {}};
}

}  // namespace postflight
