#include "cli/arguments/help_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;

// How wide the column of examples can be so that beside it there is room for
// what each of them does.
std::size_t example_width(const std::vector<Example>& examples) {
  std::size_t most = 0;
  for (const Example& example : examples)
    most = std::max(most, example.what.size());
  std::size_t width = kIndent;
  for (const Example& example : examples)
    if (kIndent + example.line.size() + kGap + most <= kHelpWidth)
      width = std::max(width, example.line.size());
  return width;
}

}  // namespace

std::string help_text(std::string_view sentence,
                      const std::vector<Example>& examples) {
  std::string text;
  while (!sentence.empty()) {
    const std::string_view line = sentence.substr(0, sentence.find('\n'));
    text += wrapped(line, 0, kHelpWidth, 0) + "\n";
    sentence.remove_prefix(std::min(line.size() + 1, sentence.size()));
  }
  text += "\nExamples:\n";
  const std::size_t width = example_width(examples);
  for (const Example& example : examples) {
    const bool beside = example.line.size() <= width;
    text += fmt::format("{:{}}{:<{}}{}{:{}}{}\n", "", kIndent, example.line,
                        beside ? width : 0, beside ? "" : "\n", "",
                        beside ? kGap : kIndent + width + kGap, example.what);
  }
  return text;
}

}  // namespace postflight
