#include "cli/arguments/declared.h"

#include <CLI/CLI.hpp>

namespace postflight {
namespace {

DeclaredOption declared_option(const CLI::Option& option) {
  DeclaredOption declared = {.names = {},
                             .value = {},
                             .help = option.get_description(),
                             .positional = option.get_positional()};
  for (const std::string& name : option.get_snames())
    declared.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    declared.names.push_back("--" + name);
  if (declared.names.empty())
    declared.names.push_back(option.get_name());
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!is_flag && !declared.positional)
    declared.value = option.get_option_text();
  return declared;
}

void describe(const std::string& text, DeclaredCommand& command) {
  constexpr std::string_view kHeading = "\n\nExamples:\n";
  const std::size_t heading = text.find(kHeading);
  command.sentence = text.substr(0, heading);
  if (heading == text.npos)
    return;
  command.examples = text.substr(heading + kHeading.size());
  while (command.examples.ends_with('\n'))
    command.examples.pop_back();
}

}  // namespace

DeclaredCommand declared_by(const CLI::App& app) {
  DeclaredCommand command;
  command.name = app.get_name();
  command.called = called(app);
  describe(app.get_description(), command);
  for (const CLI::Option* const option : app.get_options())
    command.options.push_back(declared_option(*option));
  for (const CLI::App* const below : app.get_subcommands({}))
    if (!below->get_group().empty())
      command.commands.push_back(declared_by(*below));
  return command;
}

std::vector<const DeclaredCommand*> runnable_commands(
    const DeclaredCommand& program) {
  std::vector<const DeclaredCommand*> runnable;
  for (const DeclaredCommand& command : program.commands) {
    if (command.commands.empty())
      runnable.push_back(&command);
    for (const DeclaredCommand& below : command.commands)
      runnable.push_back(&below);
  }
  return runnable;
}

std::string called(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  const bool nested = parent != nullptr && parent->get_parent() != nullptr;
  return (nested ? parent->get_name() + " " : "") + app.get_name();
}

}  // namespace postflight
