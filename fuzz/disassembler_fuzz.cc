#include <cstddef>
#include <cstdint>

#include "pickle/audit/readers.h"
#include "pickle/text/decompiler.h"
#include "pickle/text/disassembler.h"

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(decompile(bytes, {}, Limits{}, [](std::string_view) {}));
  if (bytes_behind_frames(bytes).size() > size)
    __builtin_trap();
  for (const Reading& reading : read_as_all(bytes, Limits{}).readings)
    if (reading.at > size)
      __builtin_trap();
  Disassembler disassembler(bytes);
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
