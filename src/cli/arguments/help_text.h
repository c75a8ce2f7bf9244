#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// No line of help is wider, whatever the terminal: it is also what the
// documents show.
inline constexpr std::size_t kHelpWidth = 80;

struct Example {
  std::string_view line;
  std::string_view what;
};

// What the help of a command begins with: its sentence, each line of it
// wrapped, and the examples with what they do beside them, or below one that
// leaves no room for it.
std::string help_text(std::string_view sentence,
                      const std::vector<Example>& examples);

}  // namespace postflight
