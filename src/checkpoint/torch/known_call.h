#pragma once

#include <cstdint>

#include "pickle/object.h"

namespace postflight {

// What torch's and Python's functions that we understand are called here.
enum class KnownCall : std::uint8_t {
  kUnknown,
  // What makes tensors,
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
  // and anything else.
  kDict,
  kDefaultDict,
  kCounter,
  kSet,
  kList,
  kSize,            // torch.Size, a tuple
  kPlain,           // a value that is shown whole: complex, a path
  kSameAsArgument,  // hands its first argument through
};

// Whether what such a call makes may be a tensor.
constexpr bool makes_tensor(KnownCall call) {
  return call >= KnownCall::kTensor && call <= KnownCall::kFromBuffer;
}

KnownCall known_call(const Global& callable);

}  // namespace postflight
