#include "cli/command.h"

#include <memory>
#include <utility>

#include "cli/arguments/completion.h"
#include "cli/arguments/man_page.h"

namespace postflight {

Command generate_command(std::function<DeclaredCommand()> program) {
  return {.name = "generate",
          .sentence = "Prints the man page or a shell's completions.",
          .examples = {{"postflight generate man", "roff, for man -l"},
                       {"postflight generate bash", "bash completions"},
                       {"postflight generate fish", "fish completions"}},
          .declare =
              [program = std::move(program)](CommandArguments& arguments) {
                const auto what = std::make_shared<std::string>();
                arguments.positional("WHAT", *what, "man, bash, zsh or fish")
                    .required()
                    .one_of({"man", "bash", "zsh", "fish"});
                return [what, program](Session& session) {
                  const DeclaredCommand declared = program();
                  session.print(*what == "man"    ? man_page(declared)
                                : *what == "bash" ? bash_completion(declared)
                                : *what == "zsh"  ? zsh_completion(declared)
                                                  : fish_completion(declared));
                  return Exit::kWell;
                };
              },
          .hidden = true};
}

}  // namespace postflight
