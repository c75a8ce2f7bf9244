#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "pickle/value.h"

namespace postflight {

enum class Dialect : std::uint8_t {
  kPython,
  // torch's C++ pickler, as used for flight-recorder dumps.
  kRecorder,
};

struct WriteOptions {
  int protocol = 2;  // or 4
  Dialect dialect = Dialect::kPython;
  // Numbers, persistent ids and unfinished tuples are not memoised, so a small
  // value can produce a huge pickle.
  std::uint64_t max_bytes = 4ULL << 30;
};

// Writes `root` as a pickle. Loading it yields the same object graph, with the
// same sharing and cycles.
//
// kPython: byte for byte what CPython's C pickler writes for the same graph.
// Where the protocol has no opcode for a value, Python writes a call, and so do
// we: in protocol 2 for bytes, sets, frozensets and __new__ with keywords, in
// both protocols for bytearrays. Loading then yields the call. Values that
// Python 3 never writes use the existing opcodes: Python 2's strings, INST and
// OBJ. State or items added to a value that is not an object, which no pickler
// writes, are an error. Global names are written unchanged; mapping them to
// Python 2's names, and getattr for dotted names in protocol 2, is up to the
// caller.
//
// kRecorder, in protocol 2 only: values made of None, booleans, 64-bit
// integers, floats, strings, tuples, lists and dicts, without cycles. torch
// writes equal strings once, so build a dump from interned ones.
Result<std::string> write_pickle(const Value& root,
                                 const WriteOptions& options = {});

}  // namespace postflight
