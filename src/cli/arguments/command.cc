#include "cli/arguments/command.h"

#include <algorithm>

#include "cli/arguments/common_options.h"

namespace postflight {

std::string Command::called() const {
  return path.empty() ? "postflight" : "postflight " + path;
}

const Command* Command::find(std::string_view command) const {
  const auto found = std::ranges::find(commands, command, &Command::name);
  return found == commands.end() ? nullptr : &*found;
}

const Parameter* Command::find_parameter(std::string_view parameter) const {
  for (const Parameter& one : parameters)
    if (!one.is_positional() &&
        std::ranges::find(one.names, parameter) != one.names.end())
      return &one;
  return nullptr;
}

Parameter& CommandArguments::add(Parameter::Form form, std::string_view names,
                                 std::string_view help) {
  Parameter& parameter = parameters_.emplace_back();
  parameter.form = form;
  parameter.help = help;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    parameter.names.emplace_back(name);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  return parameter;
}

Parameter& CommandArguments::flag(std::string_view names, bool& target,
                                  std::string_view help) {
  Parameter& parameter = add(Parameter::Form::kFlag, names, help);
  parameter.take = [&target](std::string_view) -> Result<> {
    target = true;
    return {};
  };
  return parameter;
}

Parameter& CommandArguments::threads(std::string_view value,
                                     std::string_view help) {
  return option("--threads", common_.threads, value, help);
}

Parameter& CommandArguments::force() {
  return flag("--force", common_.force, "Replace a file that exists");
}

Parameter& CommandArguments::answer(std::string_view names,
                                    std::string_view help) {
  return add(Parameter::Form::kAnswer, names, help);
}

void declare_parameters(
    Command& command, CommonOptions& options,
    const std::function<void(CommandArguments& arguments)>& common) {
  CommandArguments arguments(command.parameters, options);
  arguments.answer("-h,--help", "Show this help");
  if (command.declare) {
    command.run = command.declare(arguments);
    common(arguments);
  }
  for (Command& below : command.commands) {
    below.path = command.path;
    below.path += command.path.empty() ? "" : " ";
    below.path += below.name;
    declare_parameters(below, options, common);
  }
}

std::vector<const Command*> runnable_commands(const Command& program) {
  std::vector<const Command*> runnable;
  for (const Command& command : program.commands) {
    if (command.hidden)
      continue;
    if (command.run)
      runnable.push_back(&command);
    for (const Command* const below : runnable_commands(command))
      runnable.push_back(below);
  }
  return runnable;
}

}  // namespace postflight
