#include "stream/source.h"

#include <algorithm>
#include <vector>

#include "base/interruption.h"

namespace postflight {

Result<> Source::seek(std::uint64_t) {
  return fail(ErrorKind::kUnsupported,
              "this stream can only be read front to back");
}

Result<std::size_t> read_fully(Source& source, std::span<std::byte> to) {
  std::size_t count = 0;
  while (count < to.size()) {
    TRY(check_interruption());
    const Taken taken = TRY(source.read(to.subspan(count)));
    if (taken.at_end)
      break;
    if (taken.would_block())
      return fail(ErrorKind::kIo, "reading byte {} would block", source.tell());
    count += taken.count;
  }
  return count;
}

Result<bool> skip(Source& source, std::uint64_t count) {
  constexpr std::uint64_t kPiece = 64 << 10;
  if (count > kPiece && source.seekable()) {
    // All but the last byte, which is read to verify that it exists.
    const auto target = checked_add(source.tell(), count - 1);
    if (!target)
      return false;
    TRY(source.seek(*target));
    count = 1;
  }
  std::vector<std::byte> dropped(std::min(count, kPiece));
  while (count > 0) {
    const std::size_t wanted = std::min(count, kPiece);
    if (TRY(read_fully(source, std::span(dropped).first(wanted))) < wanted)
      return false;
    count -= wanted;
  }
  return true;
}

}  // namespace postflight
