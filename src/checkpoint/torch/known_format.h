#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "checkpoint/torch/known_formats.h"

namespace postflight {

// Recognises a file, or an entry of an archive, by content. `name` is that of
// the entry, or empty.
std::optional<KnownFormat> known_format(Bytes bytes, std::string_view name);

// What a file of no known format seems to be, for an error message.
std::string_view guess_format(Bytes file);

}  // namespace postflight
