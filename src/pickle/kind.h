#pragma once

#include <cstdint>

namespace postflight {

// What a value of a pickle is. Those from kGlobal on are not data but what a
// reader would do.
enum class Kind : std::uint8_t {
  kNone,
  kBoolean,
  kInteger,     // fits 64 bits
  kBigInteger,  // text(): two's complement, little-endian, more than 8 bytes
  kFloat,
  kString,        // text(): UTF-8 as written, lone surrogates and errors kept
  kLegacyString,  // text(): Python 2's str, bytes in no stated encoding
  kBytes,
  kByteArray,
  kTuple,
  kFrozenSet,
  kList,
  kSet,
  kDict,
  kGlobal,      // a name that Python would import; here only a name
  kObject,      // a call that Python would make; here only a record of it
  kPersistent,  // an id that the reader of the pickle gives a meaning
  kExtension,   // a code from Python's copyreg registry
  kBuffer,      // the n-th out-of-band buffer
  kReadOnlyBuffer,
};

}  // namespace postflight
