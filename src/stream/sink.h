#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstdint>

namespace postflight {

// Takes bytes, front to back. After an error it is of no further use.
class Sink {
 public:
  virtual ~Sink() = default;

  // Takes all of `bytes` and never changes them. Where the reader at the other
  // end is slow it waits.
  virtual Result<> write(Bytes bytes) = 0;
  // Passes on what it holds back, as far as its format can without ending.
  virtual Result<> flush() = 0;
  // Writes what its format ends with. Nothing may follow.
  virtual Result<> finish() { return flush(); }
  // How many bytes were written to it.
  virtual std::uint64_t tell() const = 0;
};

}  // namespace postflight
