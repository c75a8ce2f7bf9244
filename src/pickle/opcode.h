#pragma once

#include <cstdint>
#include <string_view>

namespace postflight {

// The opcodes of pickle protocols 0 to 5, with the names of Python's
// pickletools.
enum class Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloat = 'F',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kPersId = 'P',
  kBinPersId = 'Q',
  kReduce = 'R',
  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kInst = 'i',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kObj = 'o',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  // protocol 2
  kProto = 0x80,
  kNewObj = 0x81,
  kExt1 = 0x82,
  kExt2 = 0x83,
  kExt4 = 0x84,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  // protocol 3
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  // protocol 4
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  // protocol 5
  kByteArray8 = 0x96,
  kNextBuffer = 0x97,
  kReadOnlyBuffer = 0x98,
};

constexpr int kHighestProtocol = 5;

// What follows an opcode's byte in the stream. Counts are little-endian,
// BINFLOAT's eight bytes are not.
enum class Argument : std::uint8_t {
  kNone,
  kUnsigned1,
  kUnsigned2,
  kUnsigned4,
  kSigned4,
  kUnsigned8,
  kFloat8,    // big-endian
  kLine,      // text up to a newline
  kTwoLines,  // GLOBAL's and INST's module and name
  kBlob1,     // a one-byte count, then that many bytes
  kBlob4,
  kSignedBlob4,  // BINSTRING and LONG4: a negative count is an error
  kBlob8,
};

struct OpcodeInfo {
  Opcode code{};
  std::string_view name;
  Argument argument = Argument::kNone;
  int protocol = 0;  // the first that has it
};

// The entry for a byte of a pickle, or nullptr if no opcode has that byte.
const OpcodeInfo* opcode_info(std::uint8_t code);
// The same by name ("BINPUT"), for assemblers.
const OpcodeInfo* opcode_info(std::string_view name);
inline std::string_view name_of(Opcode opcode) {
  return opcode_info(static_cast<std::uint8_t>(opcode))->name;
}

}  // namespace postflight
