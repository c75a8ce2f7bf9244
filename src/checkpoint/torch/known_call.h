#pragma once

#include <cstdint>

#include "pickle/object.h"

namespace postflight {

// The functions of torch and Python that we understand.
enum class KnownCall : std::uint8_t {
  kUnknown,
  // Those that create tensors.
  kTensor,
  kTensorV3,
  kParameter,
  kFromType,
  kSparse,
  kQuantized,
  kNested,
  kJagged,
  kMeta,
  kFromCpu,
  kWrapper,
  kShardedTensor,
  kNdarray,
  kScalar,
  kFromBuffer,
  // Others.
  kDict,
  kDefaultDict,
  kCounter,
  kSet,
  kList,
  kSize,            // torch.Size, a tuple
  kPlain,           // a value that is shown whole: complex, a path
  kSameAsArgument,  // returns its first argument
};

// Whether such a call may create a tensor.
constexpr bool makes_tensor(KnownCall call) {
  return call >= KnownCall::kTensor && call <= KnownCall::kFromBuffer;
}

KnownCall known_call(const Global& callable);

}  // namespace postflight
