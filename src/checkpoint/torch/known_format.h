#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "pickle/audit/safety.h"

namespace postflight {

// A format that holds no pickles, and what in such a file could still run code
// or was not looked into.
struct KnownFormat {
  std::string_view title;  // "a safetensors file"
  std::vector<Reason> doubts;
};

// Recognises a file, or an entry of an archive, by content. `name` is that of
// the entry, or empty.
std::optional<KnownFormat> known_format(Bytes bytes, std::string_view name);

// What a file of no known format seems to be, for an error message.
std::string_view guess_format(Bytes file);

}  // namespace postflight
