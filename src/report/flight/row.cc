#include "report/flight/row.h"

#include "base/display_width.h"
#include "report/wrapped.h"

namespace postflight {

std::size_t row_width(const Terminal& terminal, bool all) {
  return terminal.stdout_is_terminal && !all ? terminal.width : kUnlimitedWidth;
}

std::string fitted(const std::vector<std::string>& parts, std::size_t needed,
                   std::size_t column, std::size_t width,
                   const Terminal& terminal) {
  constexpr std::size_t kLeast = 8;  // less is not worth showing
  std::string text;
  std::size_t used = column;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t gap = i == 0 ? 0 : 2;
    const std::size_t columns = display_width(parts[i]);
    if (width == kUnlimitedWidth || used + gap + columns <= width) {
      text += std::string(gap, ' ') + parts[i];
      used += gap + columns;
    } else if (i < needed) {
      if (i > 0)
        text += "\n" + std::string(column, ' ');
      text += wrapped(parts[i], column, width, column);
      used = column + columns;
    } else {
      if (used + gap + kLeast <= width)
        text += std::string(gap, ' ') +
                cut_to_width(parts[i], width - used - gap, terminal.ellipsis());
      break;
    }
  }
  return text;
}

}  // namespace postflight
