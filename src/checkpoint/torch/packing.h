#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/codec/compression.h"

namespace postflight {

// Whether the first bytes of something are those of a compressed file.
bool looks_compressed(Bytes front);

// What is in a compressed file: gzip, zlib, zstd, bzip2, xz, lzma.
struct Unpacked {
  Decompressed inner;
  // Two bytes can look like zlib, which has no signature.
  bool has_signature = true;
};
// Empty if it is not compressed in a way that is read.
std::optional<Unpacked> unpack(Bytes bytes, const Limits& limits,
                               std::uint64_t most);

// The contents of an entry of a zip archive that is neither stored nor
// deflated: bzip2, lzma, zstd, xz. Empty if the method is none of these.
std::optional<Decompressed> unpack_entry(std::uint16_t method, Bytes stored,
                                         std::uint64_t size,
                                         std::uint64_t most);

// "an lz4 file", for what is recognised but not read; else empty.
std::string_view unread_packing(Bytes front);

}  // namespace postflight
