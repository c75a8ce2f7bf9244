#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

// How CPython stores str and bytes, in all supported versions.

namespace postflight {

constexpr std::uint64_t kTextLength = 16;
constexpr std::uint64_t kTextState = 32;
constexpr std::uint64_t kBytesLength = 16;
constexpr std::uint64_t kBytesOffset = 32;

struct TextState {
  std::size_t width = 1;  // bytes per character
  bool ascii = false;
};

// The number of bits before these, which say whether the text is interned,
// differs between versions. Takes the first position that is plausible; at the
// others there are zeros.
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
