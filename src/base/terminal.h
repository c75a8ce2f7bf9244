#pragma once

#include "base/environment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

enum class ColourChoice : std::uint8_t { kAuto, kAlways, kNever };

enum class Style : std::uint8_t { kBold, kDim, kRed, kGreen, kYellow, kCyan };

// What the system reports about the terminal, before options and environment.
struct TerminalFacts {
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  std::optional<std::size_t> columns = {};
};

// Where the output goes and what it can show. A plain value: tests fill it in.
struct Terminal {
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  bool dumb = false;  // cannot move its cursor
  bool colour = false;
  bool unicode = false;
  std::size_t width = 80;

  bool operator==(const Terminal&) const = default;

  static Terminal detect(ColourChoice choice);

  // Colour is on when stdout is a terminal and TERM is not "dumb"; NO_COLOR
  // overrides that, and `choice` overrides both. COLUMNS overrides the measured
  // width, as it is only ever exported deliberately.
  static Terminal from(const TerminalFacts& facts, ColourChoice choice,
                       const Environment& environment);

  // `text`, which must be escaped already, styled if colour is on.
  std::string styled(Style style, std::string_view text) const;
  // Marks text that was cut off.
  std::string_view ellipsis() const { return unicode ? "…" : "..."; }
};

}  // namespace postflight
