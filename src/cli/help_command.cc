#include <memory>
#include <string>
#include <vector>

#include "base/suggestion.h"
#include "cli/arguments/help_text.h"
#include "cli/command.h"

namespace postflight {
namespace {

Result<const Command*> command_named(const Command& program,
                                     const std::vector<std::string>& words) {
  const Command* command = &program;
  for (const std::string& word : words) {
    const Command* const below = command->find(word);
    if (below == nullptr) {
      std::vector<std::string> known;
      for (const Command& one : command->commands)
        if (!one.hidden)
          known.emplace_back(one.name);
      const std::optional<std::string> meant = suggestion(word, known);
      return fail(ErrorKind::kUsage, "'{}' is not a command of {}{}", word,
                  command->called(),
                  meant ? fmt::format("; did you mean {}?", *meant) : "");
    }
    command = below;
  }
  return command;
}

}  // namespace

Command help_command(const Command& program) {
  return {
      .name = "help",
      .sentence = "Shows the help on a command.",
      .examples = {{"postflight help", "the commands"},
                   {"postflight help trace", "one of them"},
                   {"postflight help ckpt ls", "one below another"}},
      .declare = [&program](CommandArguments& arguments) {
        const auto words = std::make_shared<std::vector<std::string>>();
        arguments.positional("COMMAND", *words, "The command, as it is called");
        return [words, &program](Session& session) -> Result<Exit> {
          const Command* const command = TRY(command_named(program, *words));
          session.print(help_text(*command));
          return Exit::kWell;
        };
      }};
}

}  // namespace postflight
