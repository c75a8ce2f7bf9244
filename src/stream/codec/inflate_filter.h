#pragma once

#include "stream/filter.h"

#include <memory>

namespace postflight {

enum class DeflateFormat {
  kGzip,  // any number of concatenated members
  kZlib,  // one stream, nothing after it
};

// Inflates and verifies the checksums.
Result<std::unique_ptr<Filter>> make_inflate_filter(DeflateFormat format);

}  // namespace postflight
