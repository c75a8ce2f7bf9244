#pragma once

#include "stream/filter.h"

#include <memory>

namespace postflight {

enum class DeflateFormat {
  kGzip,  // any number of members, as gzip and cat leave them
  kZlib,  // one stream, nothing after it
};

// Decodes deflated data and checks its checksums.
Result<std::unique_ptr<Filter>> make_inflate_filter(DeflateFormat format);

}  // namespace postflight
