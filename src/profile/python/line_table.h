#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "profile/python/layout.h"

namespace postflight {

// The source line of the instruction at `offset` bytes in a function that
// starts at `first_line`; nothing if the table has none for it.
std::optional<std::int32_t> line_of(LineTableKind kind, Bytes table,
                                    std::int32_t first_line,
                                    std::int64_t offset);

}  // namespace postflight
