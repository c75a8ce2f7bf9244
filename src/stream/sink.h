#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstdint>

namespace postflight {

// A destination for bytes. After an error it must not be used further.
class Sink {
 public:
  virtual ~Sink() = default;

  // Writes all of `bytes`. Blocks if the reader at the other end is slow.
  virtual Result<> write(Bytes bytes) = 0;
  // Writes buffered data, as far as the format allows without ending.
  virtual Result<> flush() = 0;
  // Writes the end of the format. No write() may follow.
  virtual Result<> finish() { return flush(); }
  // The number of bytes written to it.
  virtual std::uint64_t tell() const = 0;
};

}  // namespace postflight
