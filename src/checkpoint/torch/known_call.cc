#include "checkpoint/torch/known_call.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace postflight {
namespace {

struct NamedCall {
  std::string_view name;
  KnownCall call;
};

// In any module of torch.
constexpr std::array kTorchCalls = {
    NamedCall{"_rebuild_tensor_v2", KnownCall::kTensor},
    NamedCall{"_rebuild_parameter", KnownCall::kParameter},
    NamedCall{"_rebuild_tensor_v3", KnownCall::kTensorV3},
    NamedCall{"_rebuild_tensor", KnownCall::kTensor},
    NamedCall{"_rebuild_parameter_with_state", KnownCall::kParameter},
    NamedCall{"_rebuild_from_type_v2", KnownCall::kFromType},
    NamedCall{"_rebuild_from_type", KnownCall::kFromType},
    NamedCall{"_rebuild_sparse_tensor", KnownCall::kSparse},
    NamedCall{"_rebuild_sparse_csr_tensor", KnownCall::kSparse},
    NamedCall{"_rebuild_qtensor", KnownCall::kQuantized},
    NamedCall{"_rebuild_nested_tensor", KnownCall::kNested},
    NamedCall{"_rebuild_njt", KnownCall::kJagged},
    NamedCall{"_rebuild_meta_tensor_no_storage", KnownCall::kMeta},
    NamedCall{"_rebuild_device_tensor_from_cpu_tensor", KnownCall::kFromCpu},
    NamedCall{"_rebuild_device_tensor_from_numpy", KnownCall::kFromCpu},
    NamedCall{"_rebuild_xla_tensor", KnownCall::kFromCpu},
    NamedCall{"_rebuild_wrapper_subclass", KnownCall::kWrapper},
    NamedCall{"ShardedTensor", KnownCall::kShardedTensor},
    NamedCall{"Size", KnownCall::kSize},
    NamedCall{"device", KnownCall::kPlain},
    NamedCall{"_get_layout", KnownCall::kPlain},
    NamedCall{"build_intlist", KnownCall::kSameAsArgument},
    NamedCall{"build_tensorlist", KnownCall::kSameAsArgument},
    NamedCall{"build_doublelist", KnownCall::kSameAsArgument},
    NamedCall{"build_boollist", KnownCall::kSameAsArgument},
    NamedCall{"restore_type_tag", KnownCall::kSameAsArgument},
};

constexpr std::array kPythonCalls = {
    NamedCall{"OrderedDict", KnownCall::kDict},
    NamedCall{"defaultdict", KnownCall::kDefaultDict},
    NamedCall{"Counter", KnownCall::kCounter},
    NamedCall{"dict", KnownCall::kDict},
    NamedCall{"set", KnownCall::kSet},
    NamedCall{"frozenset", KnownCall::kSet},
    NamedCall{"list", KnownCall::kList},
    NamedCall{"deque", KnownCall::kList},
    NamedCall{"bytes", KnownCall::kPlain},
    NamedCall{"bytearray", KnownCall::kPlain},
    NamedCall{"complex", KnownCall::kPlain},
    NamedCall{"slice", KnownCall::kPlain},
    NamedCall{"range", KnownCall::kPlain},
    NamedCall{"xrange", KnownCall::kPlain},
    NamedCall{"encode", KnownCall::kPlain},
};

constexpr std::array kNumpyCalls = {
    NamedCall{"_reconstruct", KnownCall::kNdarray},
    NamedCall{"scalar", KnownCall::kScalar},
    NamedCall{"_frombuffer", KnownCall::kFromBuffer},
    NamedCall{"dtype", KnownCall::kPlain},
};

template <std::size_t kCount>
KnownCall find(const std::array<NamedCall, kCount>& calls,
               std::string_view name) {
  const auto* const found = std::ranges::find(calls, name, &NamedCall::name);
  return found == calls.end() ? KnownCall::kUnknown : found->call;
}

}  // namespace

KnownCall known_call(const Global& callable) {
  const std::string_view module = callable.module;
  if (module.starts_with("torch"))
    return find(kTorchCalls, callable.name);
  if (module == "collections" || module == "builtins" ||
      module == "__builtin__" || module == "_codecs")
    return find(kPythonCalls, callable.name);
  if (module.starts_with("numpy"))
    return find(kNumpyCalls, callable.name);
  if (module.starts_with("pathlib") || module == "datetime" ||
      module == "uuid" || module == "fractions" || module == "decimal")
    return KnownCall::kPlain;
  return KnownCall::kUnknown;
}

}  // namespace postflight
