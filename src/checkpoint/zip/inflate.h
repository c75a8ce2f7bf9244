#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "stream/codec/inflater.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace postflight {

// Inflates a raw deflate stream that must fill `deflated` and come to `size`
// bytes exactly. Memory grows with the actual output, not with `size`.
Result<std::vector<std::byte>> inflate(Bytes deflated, std::uint64_t size);

// At most the first `most` bytes that `deflated` inflates to; fewer if it ends
// or is damaged before.
std::vector<std::byte> inflate_front(Bytes deflated, std::size_t most);

// Inflates piece by piece, from front to back.
class InflateStream {
 public:
  // The next piece of what is deflated, valid until the next call; empty at the
  // end.
  using More = std::function<Result<Bytes>()>;

  explicit InflateStream(More more);

  std::uint64_t position() const { return position_; }
  // Fills all of `to`, or fails.
  Result<> read(std::span<std::byte> to);
  Result<> skip(std::uint64_t count);

 private:
  Inflater inflater_;
  More more_;
  Bytes rest_;  // of the piece
  std::uint64_t position_ = 0;
};

}  // namespace postflight
