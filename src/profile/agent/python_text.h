#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

// How CPython keeps text and bytes, in every version that we know.

namespace postflight {

constexpr std::uint64_t kTextLength = 16;
constexpr std::uint64_t kTextState = 32;
constexpr std::uint64_t kBytesLength = 16;
constexpr std::uint64_t kBytesOffset = 32;

struct TextState {
  std::size_t width = 1;  // bytes a character
  bool ascii = false;
};

// How many bits say whether the text is interned differs between versions: the
// first reading that makes sense is taken, for the others see zeros.
constexpr std::optional<TextState> text_state(std::uint32_t bits) {
  for (const unsigned shift : {2U, 8U, 16U}) {
    const std::uint32_t rest = bits >> shift;
    const std::uint32_t width = rest & 7;
    const bool compact = (rest >> 3 & 1) != 0;
    const bool ascii = (rest >> 4 & 1) != 0;
    if (compact && (width == 1 || width == 2 || width == 4))
      return TextState{width, ascii};
  }
  return std::nullopt;
}

}  // namespace postflight
