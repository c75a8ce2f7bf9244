#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "stream/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace postflight {

// The entire contents of a source.
class WholeStream {
 public:
  // Reads to the end. If `expected` is about right nothing is copied; memory is
  // only touched as far as it is used. More than `cap` bytes are refused.
  static Result<WholeStream> read(Source& source, std::uint64_t expected,
                                  std::uint64_t cap);

  // Valid as long as this object, even after it is moved.
  Bytes bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace postflight
