#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "stream/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace postflight {

// All that a source gave.
class WholeStream {
 public:
  // Reads to the end. Where `expected` is about right nothing is copied on the
  // way; it costs no memory that is not used. More than `cap` bytes are
  // refused.
  static Result<WholeStream> read(Source& source, std::uint64_t expected,
                                  std::uint64_t cap);

  // Valid while this lives, also after it was moved.
  Bytes bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace postflight
