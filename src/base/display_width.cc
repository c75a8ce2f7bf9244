#include "base/display_width.h"

#include "base/escape.h"
#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <span>

namespace postflight {

namespace {

// Both tables are sorted and coarse. A combining character missing here only
// misaligns a column. Where terminals differ, the larger width is used so that
// lines never wrap.
constexpr std::array kCombining = {
    CodePoints{0x0300, 0x036F},    // accents
    CodePoints{0x0483, 0x0489},    // Cyrillic
    CodePoints{0x0591, 0x05BD},    // Hebrew points
    CodePoints{0x05BF, 0x05BF},    //
    CodePoints{0x05C1, 0x05C2},    //
    CodePoints{0x05C4, 0x05C5},    //
    CodePoints{0x0610, 0x061A},    // Arabic marks
    CodePoints{0x064B, 0x065F},    //
    CodePoints{0x0670, 0x0670},    //
    CodePoints{0x06D6, 0x06DC},    //
    CodePoints{0x06DF, 0x06E4},    //
    CodePoints{0x06EA, 0x06ED},    //
    CodePoints{0x0900, 0x0902},    // Devanagari
    CodePoints{0x093C, 0x093C},    //
    CodePoints{0x0941, 0x0948},    //
    CodePoints{0x094D, 0x094D},    //
    CodePoints{0x0951, 0x0957},    //
    CodePoints{0x0E31, 0x0E31},    // Thai
    CodePoints{0x0E34, 0x0E3A},    //
    CodePoints{0x0E47, 0x0E4E},    //
    CodePoints{0x1AB0, 0x1ACE},    // more accents
    CodePoints{0x1DC0, 0x1DFF},    //
    CodePoints{0x20D0, 0x20F0},    // marks for symbols
    CodePoints{0x302A, 0x302D},    // CJK tone marks
    CodePoints{0x3099, 0x309A},    // Kana voicing marks
    CodePoints{0xFE00, 0xFE0F},    // variation selectors
    CodePoints{0xFE20, 0xFE2F},    // half marks
    CodePoints{0xE0100, 0xE01EF},  // more variation selectors
};

constexpr std::array kWide = {
    CodePoints{0x1100, 0x115F},    // Hangul initials
    CodePoints{0x231A, 0x231B},    // watch, hourglass
    CodePoints{0x2329, 0x232A},    // angle brackets
    CodePoints{0x23E9, 0x23F3},    // media buttons, clocks
    CodePoints{0x25FD, 0x25FE},    // squares
    CodePoints{0x2614, 0x2615},    // symbols that are emoji too
    CodePoints{0x2648, 0x2653},    //
    CodePoints{0x267F, 0x267F},    //
    CodePoints{0x2693, 0x2693},    //
    CodePoints{0x26A1, 0x26A1},    //
    CodePoints{0x26AA, 0x26AB},    //
    CodePoints{0x26BD, 0x26FD},    //
    CodePoints{0x2705, 0x2705},    //
    CodePoints{0x270A, 0x270B},    //
    CodePoints{0x2728, 0x2728},    //
    CodePoints{0x274C, 0x274E},    //
    CodePoints{0x2753, 0x2757},    //
    CodePoints{0x2795, 0x2797},    //
    CodePoints{0x27B0, 0x27BF},    //
    CodePoints{0x2B1B, 0x2B1C},    //
    CodePoints{0x2B50, 0x2B55},    //
    CodePoints{0x2E80, 0x303E},    // CJK radicals and punctuation
    CodePoints{0x3041, 0x4DBF},    // Kana, CJK
    CodePoints{0x4E00, 0xA4CF},    // CJK, Yi
    CodePoints{0xA960, 0xA97F},    // Hangul initials
    CodePoints{0xAC00, 0xD7A3},    // Hangul syllables
    CodePoints{0xF900, 0xFAFF},    // CJK compatibility
    CodePoints{0xFE10, 0xFE19},    // vertical forms
    CodePoints{0xFE30, 0xFE6F},    //
    CodePoints{0xFF01, 0xFF60},    // full width forms
    CodePoints{0xFFE0, 0xFFE6},    //
    CodePoints{0x16FE0, 0x1B2FF},  // Tangut, Khitan, Kana
    CodePoints{0x1F004, 0x1F004},  // emoji
    CodePoints{0x1F0CF, 0x1F0CF},  //
    CodePoints{0x1F18E, 0x1F19A},  //
    CodePoints{0x1F1E6, 0x1F1FF},  // halves of flags
    CodePoints{0x1F200, 0x1F64F},  //
    CodePoints{0x1F680, 0x1F6FF},  //
    CodePoints{0x1F7E0, 0x1F7F0},  //
    CodePoints{0x1F90C, 0x1F9FF},  //
    CodePoints{0x1FA70, 0x1FAFF},  //
    CodePoints{0x20000, 0x3FFFD},  // CJK extensions
};

bool lies_in(std::span<const CodePoints> ranges, char32_t code_point) {
  const auto range =
      std::ranges::lower_bound(ranges, code_point, {}, &CodePoints::last);
  return range != ranges.end() && code_point >= range->first;
}

std::size_t width_of(const Utf8Character& character) {
  if (character.kind != Utf8Kind::kCharacter || character.code_point < 0x300)
    return 1;
  if (lies_in(kCombining, character.code_point))
    return 0;
  return lies_in(kWide, character.code_point) ? 2 : 1;
}

// The longest prefix that fits, including combining characters at its end.
std::string_view beginning(std::string_view text, std::size_t width) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Character character = decode_utf8(text.substr(size));
    const std::size_t columns = width_of(character);
    if (columns > width)
      break;
    width -= columns;
    size += character.size;
  }
  return text.substr(0, size);
}

}  // namespace

std::size_t display_width(std::string_view escaped) {
  std::size_t width = 0;
  while (!escaped.empty()) {
    if (const std::size_t size = printable_ascii_prefix(escaped); size > 0) {
      width += size;
      escaped.remove_prefix(size);
      continue;
    }
    const Utf8Character character = decode_utf8(escaped);
    width += width_of(character);
    escaped.remove_prefix(character.size);
  }
  return width;
}

std::string cut_to_width(std::string_view escaped, std::size_t width,
                         std::string_view ellipsis) {
  // No text takes more columns than bytes, so most are never measured.
  if (escaped.size() <= width ||
      beginning(escaped, width).size() == escaped.size())
    return std::string(escaped);
  const std::string_view mark = beginning(ellipsis, width);
  std::string cut(beginning(escaped, width - display_width(mark)));
  cut += mark;
  return cut;
}

}  // namespace postflight
