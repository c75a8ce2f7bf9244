#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "pickle/value.h"

namespace postflight {

enum class Dialect : std::uint8_t {
  kPython,
  // torch's pickler in C++, as it writes the dumps of a flight recorder.
  kRecorder,
};

struct WriteOptions {
  int protocol = 2;  // or 4
  Dialect dialect = Dialect::kPython;
  // Numbers and persistent ids have no place in a memo, nor has a tuple while
  // it is written, so that a small value can ask for a long pickle.
  std::uint64_t max_bytes = 4ULL << 30;
};

// Writes `root` as a pickle. Loading it again gives the same graph: what was
// one object is one again, and cycles stay cycles.
//
// kPython: byte for byte what CPython's own pickler in C would write for such
// a graph. Where Python has no opcode in the protocol it writes a call, and so
// do we: in protocol 2 for bytes, sets, frozensets and __new__ with keywords,
// in both for bytearrays. Loading gives the call then. What Python 3 never
// writes comes out in the opcodes there are: Python 2's strings, INST and OBJ.
// What no pickler writes, state or items given to what is no object, is an
// error.
// Names are written as they are; the ones Python 2 had for them, and getattr
// for names with dots in protocol 2, are left to whoever builds the value.
//
// kRecorder, in protocol 2 only: values made of None, booleans, integers of 64
// bits, floats, strings, tuples, lists and dicts, without cycles. torch itself
// writes equal strings once, so a dump is built of interned ones.
Result<std::string> write_pickle(const Value& root,
                                 const WriteOptions& options = {});

}  // namespace postflight
