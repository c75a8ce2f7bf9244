#pragma once

#include <cstdint>
#include <string_view>

#include "pickle/object.h"

namespace postflight {

// What importing and calling a name would mean. Python's pickle imports every
// name it meets and calls what the stream tells it to, so anything that is
// neither plain data nor one of torch's own rebuilding functions is code of
// somebody's choice.
enum class Trust : std::uint8_t {
  kPlain,      // builds plain values: containers, dates, paths, arrays
  kTorch,      // rebuilds tensors and torch's checkpoint records
  kUnknown,    // a class or function we know nothing about
  kDangerous,  // known to run programs, evaluate source or touch files
};

std::string_view trust_name(Trust trust);

struct Judgement {
  Trust trust = Trust::kUnknown;
  std::string_view reason;  // what it does, for kDangerous; else empty
};

Judgement judge(const Global& global);

}  // namespace postflight
