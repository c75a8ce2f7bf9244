#include "checkpoint/torch/packing.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "stream/codec/foreign_archive.h"

namespace postflight {
namespace {

struct Unread {
  std::string_view magic;
  std::string_view what;
};
constexpr std::array kUnread = {
    Unread{"\x04\x22\x4d\x18", "an lz4 file"},
    Unread{"Rar!\x1a\x07", "a RAR archive"},
    Unread{"\x89LZO", "an lzop file"},
};

bool is_zlib(Bytes bytes) {
  constexpr unsigned kCheck = 31;
  return bytes.size() > 2 && (bytes[0] & std::byte{0x0f}) == std::byte{8} &&
         bytes[0] <= std::byte{0x78} &&
         (static_cast<unsigned>(bytes[0]) * 256 +
          static_cast<unsigned>(bytes[1])) %
                 kCheck ==
             0;
}

}  // namespace

bool looks_compressed(Bytes front) {
  return sniff_compression(front) != Compression::kNone || is_zlib(front) ||
         is_foreign_compression(front) || is_seven_zip(front) ||
         !unread_packing(front).empty();
}

std::optional<Unpacked> unpack(Bytes bytes, const Limits& limits,
                               std::uint64_t most) {
  Limits capped = limits;
  capped.max_inflated_bytes = std::min(capped.max_inflated_bytes, most);
  if (sniff_compression(bytes) != Compression::kNone)
    return Unpacked{decompress(bytes, capped)};
  if (is_foreign_compression(bytes))
    return Unpacked{decompress_foreign(bytes, capped.max_inflated_bytes)};
  if (is_zlib(bytes))
    return Unpacked{decompress_zlib(bytes, capped), false};
  return std::nullopt;
}

std::optional<Decompressed> unpack_entry(std::uint16_t method, Bytes stored,
                                         std::uint64_t size,
                                         std::uint64_t most) {
  constexpr std::uint16_t kBzip2 = 12;
  constexpr std::uint16_t kLzma = 14;
  constexpr std::uint16_t kZstd = 93;
  constexpr std::uint16_t kXz = 95;
  if (method == kBzip2 || method == kXz)
    return decompress_foreign(stored, most);
  if (method == kZstd)
    return decompress(stored, {.max_inflated_bytes = most});
  if (method != kLzma)
    return std::nullopt;
  // A version, the size of the properties, and these: an .lzma file has its
  // size behind them.
  constexpr std::size_t kBefore = 4;
  constexpr std::size_t kProperties = 5;
  if (stored.size() < kBefore + kProperties)
    return std::nullopt;
  std::string file(as_text(stored.subspan(kBefore, kProperties)));
  for (unsigned shift = 0; shift < 64; shift += 8)
    file += static_cast<char>(size >> shift & 0xff);
  file += as_text(stored.subspan(kBefore + kProperties));
  return decompress_foreign(as_bytes(file), most);
}

std::string_view unread_packing(Bytes front) {
  const auto found = std::ranges::find_if(
      kUnread,
      [front](std::string_view magic) {
        return as_text(front).starts_with(magic);
      },
      &Unread::magic);
  return found == kUnread.end() ? std::string_view() : found->what;
}

}  // namespace postflight
