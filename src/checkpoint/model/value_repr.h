#pragma once

#include <cstddef>
#include <string>

#include "pickle/value.h"

namespace postflight {

// A value roughly as Python's repr() writes it, truncated to `most` bytes and
// safe to print. Calls that create plain values are written as those values:
// torch.Size([2, 3]), b'..', PosixPath('/a').
std::string value_repr(const Value& value, std::size_t most = 200);

// The Python type of a value: "int", "torch.Size", "jobcode.Color".
std::string value_type(const Value& value);

}  // namespace postflight
