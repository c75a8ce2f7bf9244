#include "stream/memory_stream.h"

#include <algorithm>

namespace postflight {

Result<Taken> MemorySource::read(std::span<std::byte> to) {
  if (position_ >= bytes_.size())
    return Taken{.at_end = true};
  const Bytes rest = bytes_.subspan(position_);
  const std::size_t count = std::min(rest.size(), to.size());
  std::ranges::copy(rest.first(count), to.begin());
  position_ += count;
  return Taken{.count = count};
}

Result<> MemorySource::seek(std::uint64_t position) {
  position_ = position;
  return {};
}

Result<> MemorySink::write(Bytes bytes) {
  contents_ += as_text(bytes);
  return {};
}

}  // namespace postflight
