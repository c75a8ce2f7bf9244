#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// A file of one array (.npy), or an archive of such files (.npz).
bool is_numpy(Bytes file);
// Adds a file that is already among the checkpoint's.
Result<> add_numpy(std::uint32_t file, const SourceContext& context);

}  // namespace postflight
