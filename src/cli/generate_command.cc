#include "cli/command.h"

#include <memory>

#include "cli/arguments/completion.h"
#include "cli/arguments/man_page.h"

namespace postflight {

Command generate_command(const Command& program) {
  return {.name = "generate",
          .sentence = "Prints the man page or a shell's completions.",
          .examples = {{"postflight generate man", "roff, for man -l"},
                       {"postflight generate bash", "bash completions"},
                       {"postflight generate fish", "fish completions"}},
          .declare =
              [&program](CommandArguments& arguments) {
                const auto what = std::make_shared<std::string>();
                arguments.positional("WHAT", *what, "man, bash, zsh or fish")
                    .required()
                    .one_of({"man", "bash", "zsh", "fish"});
                return [what, &program](Session& session) {
                  session.print(*what == "man"    ? man_page(program)
                                : *what == "bash" ? bash_completion(program)
                                : *what == "zsh"  ? zsh_completion(program)
                                                  : fish_completion(program));
                  return Exit::kWell;
                };
              },
          .hidden = true};
}

}  // namespace postflight
