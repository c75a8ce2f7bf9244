#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/filter.h"

#include <memory>
#include <optional>
#include <string>

namespace postflight {

enum class Compression { kNone, kGzip, kZstd };

// Detects the compression of a file from its first four bytes.
Compression sniff_compression(Bytes front);

// The decoder for a compression other than kNone.
Result<std::unique_ptr<Filter>> make_decoder(Compression compression,
                                             const Limits& limits = {});

// The result of decompressing. If the input is damaged, truncated or too large,
// `bytes` are those before that point.
struct Decompressed {
  std::string bytes;
  std::optional<Error> damage;
};

// Decompresses `bytes`, up to Limits::max_inflated_bytes. If they are not
// compressed, they are copied.
Decompressed decompress(Bytes bytes, const Limits& limits = {});
// The same for a zlib stream, which has no signature.
Decompressed decompress_zlib(Bytes bytes, const Limits& limits = {});

}  // namespace postflight
