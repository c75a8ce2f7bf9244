#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "pickle/opcode.h"
#include "pickle/value.h"

namespace postflight {

// One instruction of a pickle, decoded but not executed.
struct Instruction {
  std::uint64_t offset = 0;  // of the opcode's byte
  std::uint64_t size = 0;    // in bytes, opcode and counts included
  const OpcodeInfo* info = nullptr;
  // The bytes after the opcode, counts and newlines included.
  Bytes raw;

  // The argument as Python would see it: kNone if there is none, kGlobal for
  // GLOBAL and INST.
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  // kBoolean, kInteger
  double floating = 0;      // kFloat
  // kBigInteger (two's complement) and all kinds of text; kGlobal's module.
  // Points into the input if it is there verbatim, else into the Disassembler
  // and is then valid until next() is called again.
  std::string_view text;
  std::string_view name;  // kGlobal
};

// Disassembles a pickle of any protocol without running it. The lines of
// protocol 0 are parsed by text_form.h, as in the Machine. Badly encoded text
// is accepted: a tool that shows broken pickles should not stop there.
class Disassembler {
 public:
  explicit Disassembler(Bytes bytes, const Limits& limits = {})
      : bytes_(bytes), limits_(limits) {}

  // The next instruction, up to and including STOP, then nullopt. An error
  // names the offset and is sticky: further calls return it again.
  Result<std::optional<Instruction>> next();

  // Where the next instruction starts; after STOP, where the pickle ended.
  std::uint64_t offset() const { return offset_; }

 private:
  Bytes bytes_;
  Limits limits_;
  std::uint64_t offset_ = 0;
  bool stopped_ = false;
  Arena arena_;  // of the current instruction
};

// The argument as pickletools.dis prints it, safe for a terminal; empty if
// there is none. Not shortened.
std::string argument_text(const Instruction& instruction);

}  // namespace postflight
