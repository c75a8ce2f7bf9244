#include "cli/arguments/fr_trace_arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/ranges.h>

namespace postflight {
namespace {

// In the order in which torchfrtrace declares them.
constexpr std::array<std::string_view, 12> kTheirs = {
    "--help",
    "--selected-ranks",
    "--allow-incomplete-ranks",
    "--pg-filters",
    "--output",
    "--prefix",
    "--just_print_entries",
    "--verbose",
    "--print_stack_trace",
    "--mismatch_cap",
    "--transform-ft",
    "--group-world-size"};

std::vector<std::string_view> our_options(const Command& command) {
  std::vector<std::string_view> ours;
  for (const Parameter& parameter : command.parameters)
    for (const std::string& name : parameter.names)
      if (name.starts_with("--") &&
          std::ranges::find(kTheirs, name) == kTheirs.end())
        ours.emplace_back(name);
  return ours;
}

std::vector<std::string_view> fitting(std::span<const std::string_view> options,
                                      std::string_view word) {
  std::vector<std::string_view> found;
  for (const std::string_view option : options)
    if (option == word)
      return {option};
    else if (option.starts_with(word))
      found.push_back(option);
  return found;
}

}  // namespace

Result<> spell_out_fr_trace_options(const Command& command,
                                    std::span<std::string> arguments) {
  const std::vector<std::string_view> our_names = our_options(command);
  for (std::string& argument : arguments) {
    if (argument == "--")
      break;
    if (!argument.starts_with("--"))
      continue;
    const std::string word = argument.substr(0, argument.find('='));
    const std::vector<std::string_view> ours = fitting(our_names, word);
    if (ours.size() == 1 && ours[0] == word)
      continue;
    std::vector<std::string_view> found = fitting(kTheirs, word);
    if (found.size() > 1)
      return fail(ErrorKind::kUsage, "ambiguous option: {} could match {}",
                  word, fmt::join(found, ", "));
    if (found.empty() && ours.size() == 1)
      found = ours;
    if (!found.empty())
      argument = std::string(found[0]) + argument.substr(word.size());
  }
  return {};
}

std::vector<std::string> arguments_with_command(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const std::string_view called = argc > 0 ? argv[0] : "";
  if (called.substr(called.rfind('/') + 1) == "torchfrtrace")
    arguments.insert(arguments.begin(), "fr-trace");
  return arguments;
}

}  // namespace postflight
