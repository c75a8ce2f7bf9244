#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "pickle/value.h"

namespace postflight {

// The Python dialect of write_pickle(): byte for byte what CPython's pickler
// writes for the same object graph.
Result<std::string> write_python_pickle(const Value& root, int protocol,
                                        std::uint64_t max_bytes);

}  // namespace postflight
