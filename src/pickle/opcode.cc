#include "pickle/opcode.h"

#include <algorithm>
#include <array>

namespace postflight {
namespace {

constexpr std::array kOpcodes = std::to_array<OpcodeInfo>({
    {Opcode::kMark, "MARK", Argument::kNone, 0},
    {Opcode::kStop, "STOP", Argument::kNone, 0},
    {Opcode::kPop, "POP", Argument::kNone, 0},
    {Opcode::kPopMark, "POP_MARK", Argument::kNone, 1},
    {Opcode::kDup, "DUP", Argument::kNone, 0},
    {Opcode::kFloat, "FLOAT", Argument::kLine, 0},
    {Opcode::kInt, "INT", Argument::kLine, 0},
    {Opcode::kBinInt, "BININT", Argument::kSigned4, 1},
    {Opcode::kBinInt1, "BININT1", Argument::kUnsigned1, 1},
    {Opcode::kLong, "LONG", Argument::kLine, 0},
    {Opcode::kBinInt2, "BININT2", Argument::kUnsigned2, 1},
    {Opcode::kNone, "NONE", Argument::kNone, 0},
    {Opcode::kPersId, "PERSID", Argument::kLine, 0},
    {Opcode::kBinPersId, "BINPERSID", Argument::kNone, 1},
    {Opcode::kReduce, "REDUCE", Argument::kNone, 0},
    {Opcode::kString, "STRING", Argument::kLine, 0},
    {Opcode::kBinString, "BINSTRING", Argument::kSignedBlob4, 1},
    {Opcode::kShortBinString, "SHORT_BINSTRING", Argument::kBlob1, 1},
    {Opcode::kUnicode, "UNICODE", Argument::kLine, 0},
    {Opcode::kBinUnicode, "BINUNICODE", Argument::kBlob4, 1},
    {Opcode::kAppend, "APPEND", Argument::kNone, 0},
    {Opcode::kBuild, "BUILD", Argument::kNone, 0},
    {Opcode::kGlobal, "GLOBAL", Argument::kTwoLines, 0},
    {Opcode::kDict, "DICT", Argument::kNone, 0},
    {Opcode::kEmptyDict, "EMPTY_DICT", Argument::kNone, 1},
    {Opcode::kAppends, "APPENDS", Argument::kNone, 1},
    {Opcode::kGet, "GET", Argument::kLine, 0},
    {Opcode::kBinGet, "BINGET", Argument::kUnsigned1, 1},
    {Opcode::kInst, "INST", Argument::kTwoLines, 0},
    {Opcode::kLongBinGet, "LONG_BINGET", Argument::kUnsigned4, 1},
    {Opcode::kList, "LIST", Argument::kNone, 0},
    {Opcode::kEmptyList, "EMPTY_LIST", Argument::kNone, 1},
    {Opcode::kObj, "OBJ", Argument::kNone, 1},
    {Opcode::kPut, "PUT", Argument::kLine, 0},
    {Opcode::kBinPut, "BINPUT", Argument::kUnsigned1, 1},
    {Opcode::kLongBinPut, "LONG_BINPUT", Argument::kUnsigned4, 1},
    {Opcode::kSetItem, "SETITEM", Argument::kNone, 0},
    {Opcode::kTuple, "TUPLE", Argument::kNone, 0},
    {Opcode::kEmptyTuple, "EMPTY_TUPLE", Argument::kNone, 1},
    {Opcode::kSetItems, "SETITEMS", Argument::kNone, 1},
    {Opcode::kBinFloat, "BINFLOAT", Argument::kFloat8, 1},
    {Opcode::kProto, "PROTO", Argument::kUnsigned1, 2},
    {Opcode::kNewObj, "NEWOBJ", Argument::kNone, 2},
    {Opcode::kExt1, "EXT1", Argument::kUnsigned1, 2},
    {Opcode::kExt2, "EXT2", Argument::kUnsigned2, 2},
    {Opcode::kExt4, "EXT4", Argument::kSigned4, 2},
    {Opcode::kTuple1, "TUPLE1", Argument::kNone, 2},
    {Opcode::kTuple2, "TUPLE2", Argument::kNone, 2},
    {Opcode::kTuple3, "TUPLE3", Argument::kNone, 2},
    {Opcode::kNewTrue, "NEWTRUE", Argument::kNone, 2},
    {Opcode::kNewFalse, "NEWFALSE", Argument::kNone, 2},
    {Opcode::kLong1, "LONG1", Argument::kBlob1, 2},
    {Opcode::kLong4, "LONG4", Argument::kSignedBlob4, 2},
    {Opcode::kBinBytes, "BINBYTES", Argument::kBlob4, 3},
    {Opcode::kShortBinBytes, "SHORT_BINBYTES", Argument::kBlob1, 3},
    {Opcode::kShortBinUnicode, "SHORT_BINUNICODE", Argument::kBlob1, 4},
    {Opcode::kBinUnicode8, "BINUNICODE8", Argument::kBlob8, 4},
    {Opcode::kBinBytes8, "BINBYTES8", Argument::kBlob8, 4},
    {Opcode::kEmptySet, "EMPTY_SET", Argument::kNone, 4},
    {Opcode::kAddItems, "ADDITEMS", Argument::kNone, 4},
    {Opcode::kFrozenSet, "FROZENSET", Argument::kNone, 4},
    {Opcode::kNewObjEx, "NEWOBJ_EX", Argument::kNone, 4},
    {Opcode::kStackGlobal, "STACK_GLOBAL", Argument::kNone, 4},
    {Opcode::kMemoize, "MEMOIZE", Argument::kNone, 4},
    {Opcode::kFrame, "FRAME", Argument::kUnsigned8, 4},
    {Opcode::kByteArray8, "BYTEARRAY8", Argument::kBlob8, 5},
    {Opcode::kNextBuffer, "NEXT_BUFFER", Argument::kNone, 5},
    {Opcode::kReadOnlyBuffer, "READONLY_BUFFER", Argument::kNone, 5},
});

constexpr auto kByCode = [] {
  std::array<const OpcodeInfo*, 256> table{};
  for (const OpcodeInfo& info : kOpcodes)
    table[static_cast<std::uint8_t>(info.code)] = &info;
  return table;
}();

}  // namespace

const OpcodeInfo* opcode_info(std::uint8_t code) {
  return kByCode[code];
}

const OpcodeInfo* opcode_info(std::string_view name) {
  const auto* found = std::ranges::find(kOpcodes, name, &OpcodeInfo::name);
  return found == kOpcodes.end() ? nullptr : &*found;
}

}  // namespace postflight
