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
constexpr std::array<std::string_view, 7> kOurs = {
    "--stdout", "--sqlite", "--exit-code", "--threads",
    "--json",   "--color",  "--quiet"};

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

Result<> spell_out_fr_trace_options(std::span<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--")
      break;
    // argparse takes -p=x for -p x, CLI11 for -p '=x'.
    if (argument.starts_with("-p=") || argument.starts_with("-o="))
      argument.erase(2, argument.size() > 3 ? 1 : 0);
    if (!argument.starts_with("--"))
      continue;
    const std::string word = argument.substr(0, argument.find('='));
    const std::vector<std::string_view> ours = fitting(kOurs, word);
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
