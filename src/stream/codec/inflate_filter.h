#pragma once

#include "stream/codec/inflater.h"
#include "stream/filter.h"

#include <memory>

namespace postflight {

// Inflates and verifies the checksums: any number of concatenated gzip members,
// or one zlib stream with nothing after it.
Result<std::unique_ptr<Filter>> make_inflate_filter(DeflateFormat format);

}  // namespace postflight
