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

// One instruction of a pickle, its argument decoded but nothing done with it.
struct Instruction {
  std::uint64_t offset = 0;  // of the opcode's byte
  std::uint64_t size = 0;    // of all of it, opcode and counts included
  const OpcodeInfo* info = nullptr;
  // What lies behind the opcode, counts and newlines included.
  Bytes raw;

  // The argument as Python would see it: kNone where there is none, kGlobal
  // for GLOBAL and INST.
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  // kBoolean, kInteger
  double floating = 0;      // kFloat
  // kBigInteger (two's complement) and all kinds of text; kGlobal's module.
  // Points into the input where it stands there as it is, else into the
  // Disassembler, and is then valid until its next call of next().
  std::string_view text;
  std::string_view name;  // kGlobal
};

// Walks through a pickle of any protocol without running it. The lines of
// protocol 0 are read as text_form.h reads them for the Machine. Text in a
// wrong encoding passes: a tool that shows broken pickles should not stop
// there.
class Disassembler {
 public:
  explicit Disassembler(Bytes bytes, const Limits& limits = {})
      : bytes_(bytes), limits_(limits) {}

  // The next instruction, up to and including STOP; then nothing. An error
  // says where and stays: asking again gives it again.
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
// there is none. It is as long as the argument: cut it to taste.
std::string argument_text(const Instruction& instruction);

}  // namespace postflight
