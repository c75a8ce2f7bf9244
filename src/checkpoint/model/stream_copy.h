#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace postflight {

constexpr std::uint64_t kCacheLine = 64;

// Copies many pieces of bytes to where they are wanted. What is larger than a
// cache goes past it: a line that is written whole need not be read first, and
// 4 KiB pieces are copied in two thirds of the time memcpy takes.
class StreamCopy {
 public:
  // `total`: of all pieces together.
  explicit StreamCopy(std::uint64_t total);
  StreamCopy(const StreamCopy&) = delete;
  StreamCopy& operator=(const StreamCopy&) = delete;
  // All that was copied can be seen by other threads from here on.
  ~StreamCopy();

  // `to` is as long as `from`.
  void copy(Bytes from, std::span<std::byte> to) const;

 private:
  bool past_cache_;
};

}  // namespace postflight
