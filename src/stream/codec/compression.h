#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/filter.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

enum class Compression { kNone, kGzip, kZstd };

// "none", "gzip", "zstd".
std::string_view compression_name(Compression compression);

// How a file is compressed that begins with these bytes; four of them tell.
Compression sniff_compression(Bytes front);

// The decoder for a compression other than kNone.
Result<std::unique_ptr<Filter>> make_decoder(Compression compression,
                                             const Limits& limits = {});

// What a compressed byte range came to. Where it is damaged, cut off or too
// large, `bytes` are those before that place.
struct Decompressed {
  std::string bytes;
  std::optional<Error> damage;
};

// Decodes a byte range that may be compressed, up to
// Limits::max_inflated_bytes. One that is not is copied.
Decompressed decompress(Bytes bytes, const Limits& limits = {});

}  // namespace postflight
