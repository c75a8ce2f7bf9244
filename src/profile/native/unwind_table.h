#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "profile/native/elf_image.h"

namespace postflight {

// DWARF's register numbers on x86-64; higher ones are not needed for unwinding.
constexpr std::size_t kUnwindRegisters = 17;
constexpr std::size_t kRbx = 3;
constexpr std::size_t kRbp = 6;
constexpr std::size_t kRsp = 7;
constexpr std::size_t kR12 = 12;
constexpr std::size_t kReturnAddress = 16;

// Where the value of a caller's register is.
struct UnwindRule {
  enum class Kind : std::uint8_t {
    kSame,       // still in the register
    kAtOffset,   // in memory, at CFA + offset
    kUndefined,  // lost; for the return address: there is no caller
    kUnknown,    // by a rule that is not supported
  };
  Kind kind = Kind::kSame;
  std::int64_t offset = 0;

  bool operator==(const UnwindRule&) const = default;
};

// How to unwind from an address in a function to its caller.
struct UnwindRow {
  enum class Frame : std::uint8_t {
    kRegister,  // the CFA is a register plus an offset
    kPlt,       // the expression that linkers write for a PLT
    kUnknown,
  };
  Frame frame = Frame::kUnknown;
  std::uint64_t frame_register = kRsp;
  std::int64_t frame_offset = 0;
  std::array<UnwindRule, kUnwindRegisters> rules = {};

  bool operator==(const UnwindRow&) const = default;
};

// The call frame information of an ELF file (.eh_frame). Compilers write it for
// exceptions, so it exists without debug files, and it is more precise than
// frame pointers. Functions are listed at once and decoded on demand. Views
// into the bytes of the image, which must outlive it.
class UnwindTable {
 public:
  // Skips what is not supported.
  static UnwindTable parse(const ElfImage& image);

  std::size_t size() const { return functions_.size(); }
  // The row for the instruction at `address`, before relocation.
  std::optional<UnwindRow> row(std::uint64_t address) const;
  // The start of the function that contains the address.
  std::optional<std::uint64_t> function_start(std::uint64_t address) const;

 private:
  struct Common {
    std::uint64_t code_alignment = 1;
    std::int64_t data_alignment = 1;
    std::uint8_t pointer_encoding = 0;
    bool augmented = false;
    Bytes instructions = {};
  };
  struct Function {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t common = 0;
    Bytes instructions = {};
  };
  class Decoder;

  const Function* find(std::uint64_t address) const;

  std::vector<Common> commons_;
  std::vector<Function> functions_;
};

}  // namespace postflight
