#include "cli/arguments/help_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
// Where the help of parameters starts.
constexpr std::size_t kColumn = 24;

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

std::string sentence_text(std::string_view sentence) {
  std::string text;
  while (!sentence.empty()) {
    const std::string_view line = sentence.substr(0, sentence.find('\n'));
    text += wrapped(line, 0, kHelpWidth, 0) + "\n";
    sentence.remove_prefix(std::min(line.size() + 1, sentence.size()));
  }
  return text;
}

// "[DIR...]"
std::string positional_usage(const Parameter& positional) {
  const std::string name = positional.name() + (positional.list ? "..." : "");
  return positional.is_required ? name : "[" + name + "]";
}

std::string usage(const Command& command) {
  std::string text = fmt::format("Usage: {} [OPTIONS]", command.called());
  for (const Parameter& parameter : command.parameters)
    if (parameter.is_positional())
      text += " " + positional_usage(parameter);
  if (!command.commands.empty())
    text += command.run ? " [SUBCOMMAND]" : " SUBCOMMAND";
  return text + "\n";
}

std::string parameter_text(const Parameter& parameter) {
  std::string text = fmt::format("  {}", fmt::join(parameter.names, ","));
  if (!parameter.value.empty())
    text += " " + parameter.value;
  if (text.size() >= kColumn)
    text += "\n";
  const std::size_t used = text.ends_with('\n') ? 0 : text.size();
  return fmt::format("{}{:{}}{}\n", text, "", kColumn - used,
                     wrapped(parameter.help, kColumn, kHelpWidth, kColumn));
}

std::string parameters_text(const Command& command, bool positional,
                            std::string_view heading) {
  std::string text;
  for (const Parameter& parameter : command.parameters)
    if (parameter.is_positional() == positional)
      text += parameter_text(parameter);
  return text.empty() ? "" : fmt::format("\n{}:\n{}", heading, text);
}

std::string commands_text(const Command& command) {
  std::string text;
  for (const Command& below : command.commands) {
    if (below.hidden)
      continue;
    const std::string name = fmt::format("  {:<9} ", below.name);
    const std::string_view sentence =
        below.sentence.substr(0, below.sentence.find('\n'));
    text +=
        name + wrapped(sentence, name.size(), kHelpWidth, name.size()) + "\n";
  }
  return text.empty() ? "" : "\nSubcommands:\n" + text;
}

}  // namespace

std::string examples_text(const std::vector<Example>& examples) {
  std::string text;
  const std::size_t width = example_width(examples);
  for (const Example& example : examples) {
    const bool beside = example.line.size() <= width;
    text += fmt::format("{:{}}{:<{}}{}{:{}}{}\n", "", kIndent, example.line,
                        beside ? width : 0, beside ? "" : "\n", "",
                        beside ? kGap : kIndent + width + kGap, example.what);
  }
  return text;
}

std::string help_text(const Command& command) {
  return fmt::format(
      "{}\nExamples:\n{}\n{}{}{}{}\n", sentence_text(command.sentence),
      examples_text(command.examples), usage(command),
      parameters_text(command, true, "Positionals"),
      parameters_text(command, false, "Options"), commands_text(command));
}

}  // namespace postflight
