#include "checkpoint/zip/local_header.h"

#include "checkpoint/zip/format.h"

namespace postflight {

std::optional<LocalHeader> LocalHeader::read(Bytes archive, std::uint64_t at) {
  if (at > archive.size() || archive.size() - at < kLocalHeaderSize ||
      !as_text(archive.subspan(at)).starts_with(kLocalSignature))
    return std::nullopt;
  const std::byte* const from = archive.data() + at;
  const auto narrow = [from](std::size_t offset) {
    return load_little_endian<std::uint16_t>(from + offset);
  };
  const auto wide = [from](std::size_t offset) {
    return load_little_endian<std::uint32_t>(from + offset);
  };
  const std::uint64_t name = narrow(26);
  const std::uint64_t extra = narrow(28);
  if (archive.size() - at - kLocalHeaderSize < name + extra)
    return std::nullopt;
  return LocalHeader{
      .version = narrow(4),
      .flags = narrow(6),
      .method = narrow(8),
      .modified = wide(10),
      .crc32 = wide(14),
      .compressed_size = wide(18),
      .size = wide(22),
      .name = as_text(archive.subspan(at + kLocalHeaderSize, name)),
      .data = at + kLocalHeaderSize + name + extra};
}

}  // namespace postflight
