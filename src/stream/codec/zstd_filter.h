#pragma once

#include "base/limits.h"
#include "stream/filter.h"

#include <memory>

namespace postflight {

// Decodes zstd frames, one after the other; empty and skippable ones too. A
// frame whose window is larger than Limits::max_window_bytes is refused.
Result<std::unique_ptr<Filter>> make_zstd_decoder(const Limits& limits = {});

}  // namespace postflight
