#pragma once

#include "stream/memory_stream.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {

// Gives out a text in pieces of the sizes told, over and over; a size of 0 is
// a read that would block.
class CutSource : public Source {
 public:
  CutSource(std::string_view text, std::vector<std::size_t> sizes)
      : text_(as_bytes(text)), sizes_(std::move(sizes)) {}

  Result<Taken> read(std::span<std::byte> to) override {
    const std::size_t size = sizes_[calls_++ % sizes_.size()];
    if (size == 0)
      return Taken{};
    return text_.read(to.first(std::min(size, to.size())));
  }
  std::uint64_t tell() const override { return text_.tell(); }

 private:
  MemorySource text_;
  std::vector<std::size_t> sizes_;
  std::size_t calls_ = 0;
};

// All that a source gives, and what it ended with.
struct Drained {
  std::string bytes;
  std::string error = {};  // empty: the end
  std::size_t blocked = 0;

  bool operator==(const Drained&) const = default;
  // How GoogleTest prints one.
  friend void PrintTo(const Drained& drained, std::ostream* out) {
    *out << testing::PrintToString(drained.bytes) << ", error \""
         << drained.error << "\", blocked " << drained.blocked;
  }
};

inline Drained drain(Source& source, std::size_t piece = 4096) {
  Drained drained;
  std::string buffer(piece, '\0');
  for (;;) {
    const Result<Taken> taken =
        source.read(std::as_writable_bytes(std::span(buffer)));
    if (!taken) {
      drained.error = taken.error().message();
      return drained;
    }
    if (taken->at_end)
      return drained;
    drained.blocked += taken->would_block() ? 1 : 0;
    drained.bytes.append(buffer, 0, taken->count);
  }
}

}  // namespace postflight
