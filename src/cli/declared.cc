#include "cli/declared.h"

#include <CLI/CLI.hpp>

namespace postflight {

Description description_of(const CLI::App& app) {
  constexpr std::string_view kHeading = "\n\nExamples:\n";
  std::string text = app.get_description();
  const std::size_t heading = text.find(kHeading);
  if (heading == text.npos)
    return {text, ""};
  std::string examples = text.substr(heading + kHeading.size());
  while (!examples.empty() && examples.back() == '\n')
    examples.pop_back();
  return {text.substr(0, heading), examples};
}

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands(
      [](const CLI::App* command) { return !command->get_group().empty(); });
  return commands;
}

std::vector<const CLI::App*> runnable_commands(const CLI::App& program) {
  std::vector<const CLI::App*> runnable;
  for (const CLI::App* const command : visible_commands(program)) {
    const std::vector<const CLI::App*> below = visible_commands(*command);
    if (below.empty())
      runnable.push_back(command);
    runnable.insert(runnable.end(), below.begin(), below.end());
  }
  return runnable;
}

std::string command_line_name(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  const bool nested = parent != nullptr && parent->get_parent() != nullptr;
  return (nested ? parent->get_name() + " " : "") + app.get_name();
}

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  if (names.empty())
    names.push_back(option.get_name());
  return names;
}

std::string option_value(const CLI::Option& option) {
  const bool is_flag = option.get_items_expected_max() == 0;
  return is_flag || option.get_positional() ? "" : option.get_option_text();
}

}  // namespace postflight
