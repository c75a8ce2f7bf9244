#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "stream/codec/compression.h"

namespace postflight {

// bzip2, xz and lzma, by their first bytes. Up to `most` bytes are decoded;
// more is damage, as for decompress().
bool is_foreign_compression(Bytes front);
Decompressed decompress_foreign(Bytes bytes, std::uint64_t most);

bool is_seven_zip(Bytes front);
// Where the archive ends that begins there, as it states itself.
std::uint64_t seven_zip_end(Bytes archive);
// A file in a 7z archive. `failure` says why its bytes end early.
struct ForeignMember {
  std::string name;
  std::string bytes;
  std::string failure;
};
// Hands out member by member; `take` returns how many bytes of the next one to
// read at most. Fails if the archive is damaged, or uses what is not supported.
Result<> read_seven_zip(
    Bytes archive, std::uint64_t most,
    const std::function<std::uint64_t(ForeignMember member)>& take);

}  // namespace postflight
