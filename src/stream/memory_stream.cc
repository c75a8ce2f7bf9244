#include "stream/memory_stream.h"

#include <algorithm>

namespace postflight {

Result<Taken> MemorySource::read(std::span<std::byte> to) {
  if (position_ >= bytes_.size())
    return Taken{.at_end = true};
  const Bytes rest = bytes_.subspan(position_);
  const std::size_t count = std::min(rest.size(), to.size());
  copy_bytes(rest.first(count), to);
  position_ += count;
  return Taken{.count = count};
}

std::optional<Bytes> MemorySource::take_rest() {
  const Bytes rest =
      bytes_.subspan(std::min<std::uint64_t>(position_, bytes_.size()));
  position_ += rest.size();
  return rest;
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
