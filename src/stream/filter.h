#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstddef>
#include <span>

namespace postflight {

// What the caller of a Filter knows about the bytes to come.
enum class FilterStage {
  kMore,   // there may be more
  kFlush,  // there may be more, but output everything for the bytes so far
  kLast,   // nothing follows
};

enum class FilterState {
  kNeedsInput,  // all of `in` was used; after a kFlush, all is written
  kNeedsRoom,   // there is more output than `out` has room for
  kDone,        // after a kLast: everything was written
};

// One direction of a transform: bytes in, other bytes out, in pieces of any
// size. A FilterSource applies one to what is read, a FilterSink to what is
// written. The output does not depend on how the input is split.
class Filter {
 public:
  virtual ~Filter() = default;

  // Consumes bytes from the front of `in` and writes bytes to the front of
  // `out`, which is not empty, advancing both. On an error, the bytes written
  // before it are valid.
  virtual Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                                   FilterStage stage) = 0;

  // True if each output byte depends only on the input byte at the same offset,
  // so that decoding may start anywhere.
  virtual bool keeps_places() const { return false; }
};

}  // namespace postflight
