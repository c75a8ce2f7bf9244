#include "stream/whole_stream.h"

#include <algorithm>
#include <span>
#include <utility>

namespace postflight {
namespace {

// Block decoders need room for one more block than they output.
constexpr std::uint64_t kSpare = 256 << 10;

}  // namespace

Result<WholeStream> WholeStream::read(Source& source, std::uint64_t expected,
                                      std::uint64_t cap) {
  WholeStream whole;
  // One byte more than the cap, to detect that there is more.
  const std::uint64_t most = std::max(cap, cap + 1);
  std::uint64_t room = std::min(std::min(expected, most) + kSpare, most);
  for (;;) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(room);
    copy_bytes(whole.bytes(), {larger.get(), room});
    whole.bytes_ = std::move(larger);
    whole.size_ += TRY(read_fully(
        source, {whole.bytes_.get() + whole.size_, room - whole.size_}));
    if (whole.size_ > cap)
      return fail(ErrorKind::kRefused,
                  "it decodes to more than the {} bytes allowed "
                  "(max_inflated_bytes)",
                  cap);
    if (whole.size_ < room)
      return whole;
    room = std::min(most, room + std::max(room, kSpare));
  }
}

}  // namespace postflight
