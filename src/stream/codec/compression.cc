#include "stream/codec/compression.h"

#include "stream/codec/inflate_filter.h"
#include "stream/codec/zstd_filter.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

namespace postflight {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::uint64_t kFirstRoom = 64 << 10;

// zstd's skippable frames: 0x184D2A50 to 0x184D2A5F, little-endian.
bool is_skippable_frame(std::string_view front) {
  return front.size() >= 4 && (front[0] & 0xf0) == 0x50 &&
         front.substr(1, 3) == "\x2a\x4d\x18";
}

// Memory grows with the actual output, not with the size a file claims.
Result<> decode_into(Filter& decoder, Bytes bytes, std::uint64_t cap,
                     std::string& out) {
  for (;;) {
    const std::size_t used = out.size();
    if (used > cap) {
      out.resize(cap);
      return fail(ErrorKind::kRefused,
                  "it decodes to more than the {} bytes allowed", cap);
    }
    // One byte more than the cap, to detect that there is more.
    const std::uint64_t more = std::max<std::uint64_t>(kFirstRoom, used);
    out.resize(used + std::min(more, cap - used + 1));
    std::span<std::byte> room =
        std::as_writable_bytes(std::span(out)).subspan(used);
    const Result<FilterState> state =
        decoder.step(bytes, room, FilterStage::kLast);
    out.resize(out.size() - room.size());
    if (!state || *state == FilterState::kDone) {
      if (out.size() > cap)
        continue;
      TRY(state ? Result<>()
                : Result<>(fail(state.error().kind(), "{}",
                                state.error().message())));
      return {};
    }
  }
}

Decompressed decode(Result<std::unique_ptr<Filter>> decoder, Bytes bytes,
                    const Limits& limits) {
  Decompressed result;
  Result<> decoded =
      decoder ? decode_into(**decoder, bytes, limits.max_inflated_bytes,
                            result.bytes)
              : Result<>(tl::unexpected<Error>(std::move(decoder).error()));
  if (!decoded)
    result.damage = std::move(decoded).error();
  return result;
}

}  // namespace

Compression sniff_compression(Bytes front) {
  const std::string_view text = as_text(front);
  if (text.starts_with(kGzipMagic))
    return Compression::kGzip;
  if (text.starts_with(kZstdMagic) || is_skippable_frame(text))
    return Compression::kZstd;
  return Compression::kNone;
}

Result<std::unique_ptr<Filter>> make_decoder(Compression compression,
                                             const Limits& limits) {
  assert(compression != Compression::kNone);
  return compression == Compression::kGzip
             ? make_inflate_filter(DeflateFormat::kGzip)
             : make_zstd_decoder(limits);
}

Decompressed decompress(Bytes bytes, const Limits& limits) {
  const Compression compression = sniff_compression(bytes);
  if (compression == Compression::kNone)
    return {.bytes = std::string(as_text(bytes)), .damage = {}};
  return decode(make_decoder(compression, limits), bytes, limits);
}

Decompressed decompress_zlib(Bytes bytes, const Limits& limits) {
  return decode(make_inflate_filter(DeflateFormat::kZlib), bytes, limits);
}

}  // namespace postflight
