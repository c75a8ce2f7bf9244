#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "pickle/value.h"

namespace postflight {

// The recorder dialect of write_pickle(): protocol 2, byte for byte what
// torch's C++ pickler writes for a flight-recorder dump.
Result<std::string> write_recorder_pickle(const Value& root,
                                          std::uint64_t max_bytes);

}  // namespace postflight
