#pragma once

#include "base/limits.h"
#include "stream/filter.h"

#include <memory>

namespace postflight {

// Decodes any number of zstd frames, including empty and skippable ones. A
// frame whose window exceeds Limits::max_window_bytes is refused.
Result<std::unique_ptr<Filter>> make_zstd_decoder(const Limits& limits = {});

}  // namespace postflight
