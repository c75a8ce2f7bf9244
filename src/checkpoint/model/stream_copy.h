#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace postflight {

constexpr std::uint64_t kCacheLine = 64;

// Copies many pieces of memory. More than fits a cache is written with
// non-temporal stores: a cache line that is written whole need not be read
// first, and pieces of 4 KiB take two thirds of the time of memcpy.
class StreamCopy {
 public:
  // `total`: the bytes of all pieces.
  explicit StreamCopy(std::uint64_t total);
  StreamCopy(const StreamCopy&) = delete;
  StreamCopy& operator=(const StreamCopy&) = delete;
  // Makes the copies visible to other threads.
  ~StreamCopy();

  // `to` is as long as `from`.
  void copy(Bytes from, std::span<std::byte> to) const;

 private:
  bool past_cache_;
};

}  // namespace postflight
