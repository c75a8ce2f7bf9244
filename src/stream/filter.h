#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstddef>
#include <span>

namespace postflight {

// What the caller of a Filter knows about the bytes to come.
enum class FilterStage {
  kMore,   // there may be more
  kFlush,  // there may be more, but give out what the bytes so far come to
  kLast,   // nothing follows
};

enum class FilterState {
  kNeedsInput,  // all of `in` was used; after a kFlush, all is given out
  kNeedsRoom,   // there is more to give out than `out` had room for
  kDone,        // after a kLast: everything was given out
};

// One direction of a transform: bytes in, other bytes out, in pieces of any
// size. A FilterSource runs one over what it pulls, a FilterSink over what is
// pushed. What comes out is the same however the bytes are cut.
class Filter {
 public:
  virtual ~Filter() = default;

  // Uses bytes from the front of `in` and puts bytes at the front of `out`,
  // which is not empty, moving both on. On an error, what was put before it is
  // good.
  virtual Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                                   FilterStage stage) = 0;

  // True where each byte out depends on the byte in at the same place only, so
  // that one may start anywhere.
  virtual bool keeps_places() const { return false; }
};

}  // namespace postflight
