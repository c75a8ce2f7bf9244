#include <cstddef>
#include <cstdint>

#include "pickle/disassembler.h"

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  Disassembler disassembler(std::as_bytes(std::span(data, size)));
  std::uint64_t end = 0;
  while (true) {
    const Result<std::optional<Instruction>> next = disassembler.next();
    if (!next || !*next)
      return 0;
    if ((*next)->offset != end)
      __builtin_trap();
    end += (*next)->size;
    if (argument_text(**next).empty() != ((*next)->kind == Kind::kNone))
      __builtin_trap();
  }
}
