#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "checkpoint/model/contents.h"

namespace postflight {

bool is_gguf(Bytes file);
// Adds a file that is already among the checkpoint's.
Result<> add_gguf(std::uint32_t file, const SourceContext& context);

}  // namespace postflight
