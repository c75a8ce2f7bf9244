#include "cli/command.h"

#include <CLI/CLI.hpp>

#include "cli/completion.h"
#include "cli/man_page.h"

namespace postflight {

Command generate_command(const CLI::App& program) {
  return {.name = "generate",
          .sentence = "Prints the man page or a shell's completions.",
          .examples = {{"postflight generate man", "roff, for man -l"},
                       {"postflight generate bash", "bash completions"},
                       {"postflight generate fish", "fish completions"}},
          .declare =
              [&program](CLI::App& app) {
                const auto what = std::make_shared<std::string>();
                app.add_option("WHAT", *what, "man, bash, zsh or fish")
                    ->required()
                    ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}))
                    ->option_text(" ");
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
