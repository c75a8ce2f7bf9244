#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/file_kind.h"
#include "base/escape.h"
#include "cli/arguments/fr_trace_arguments.h"
#include "cli/arguments/help_text.h"
#include "cli/arguments/parser.h"
#include "cli/command.h"

namespace postflight {
namespace {

// --json, --color and --quiet, which every command takes.
void add_common_options(CommandArguments& arguments, CommonOptions& options) {
  arguments.flag("--json", options.json, "Print JSON");
  arguments
      .option("--color", options.color, "auto|always|never",
              "When to use colour")
      .one_of({"auto", "always", "never"});
  arguments.flag("-q,--quiet", options.quiet, "Hide the progress line");
}

// What the command line asks for, with fr-trace's options as argparse reads
// them.
Result<Parsed> parse_words(const Command& program, int argc, char** argv) {
  std::vector<std::string> words = arguments_with_command(argc, argv);
  if (!words.empty() && words[0] == "fr-trace")
    TRY(spell_out_fr_trace_options(*program.find("fr-trace"), words));
  return parse(program, words);
}

// "model.pt is a checkpoint: postflight ckpt ls model.pt", if that is why a
// command could not read what it was given.
std::string wrong_kind(const Parsed& parsed) {
  const std::string_view path = parsed.command->path;
  const std::string name = fmt::format(" {} ", path.substr(0, path.find(' ')));
  for (const std::string& word : parsed.positionals) {
    const std::optional<FileKind> kind = file_kind(word);
    if (!kind || kind->homes.find(name) != kind->homes.npos)
      continue;
    return kind->command.empty()
               ? fmt::format("{} is {}", word, kind->what)
               : fmt::format("{} is {}: {} {}", word, kind->what, kind->command,
                             shell_quoted(word));
  }
  return "";
}

int could_not_look(const Error& error) {
  Session({}).complain(error);
  return static_cast<int>(Exit::kCouldNotLook);
}

}  // namespace

int run_program(int argc, char** argv) {
  Command program = {
      .name = "postflight",
      .sentence =
          "Reads what a distributed PyTorch job left behind and says what "
          "happened.",
      .examples = {{"postflight trace dumps/", "who is at fault for a hang?"},
                   {"postflight ckpt ls model.pt", "what is in a checkpoint?"},
                   {"postflight pickle model.pt", "what would loading it run?"},
                   {"postflight help trace", "help on one command"}},
      .declare = {},
      .commands = {trace_command(), fr_trace_command(), entries_command(),
                   stacks_command(), ckpt_command(), pickle_command(),
                   profile_command(), stream_command(), doctor_command(),
                   version_command()}};
  program.commands.push_back(help_command(program));
  program.commands.push_back(generate_command(program));
  CommonOptions common;
  declare_parameters(program, common, [&common](CommandArguments& arguments) {
    add_common_options(arguments, common);
  });
  CommandArguments(program.parameters, common)
      .answer("--version", "Show the version");

  const Result<Parsed> parsed = parse_words(program, argc, argv);
  if (!parsed)
    return could_not_look(parsed.error());
  Session session(common);
  if (parsed->answer != nullptr) {
    session.print(parsed->answer->name() == "--help"
                      ? help_text(*parsed->command)
                      : "postflight " POSTFLIGHT_VERSION "\n");
    return session.finish(Exit::kWell);
  }
  const Result<Exit> exit = parsed->command->run(session);
  const bool misread = exit ? *exit == Exit::kCouldNotLook
                            : exit.error().kind() != ErrorKind::kUsage;
  // A dump is a pickle, which ckpt reads as a checkpoint without tensors.
  const std::string hint = misread || parsed->command->path.starts_with("ckpt ")
                               ? wrong_kind(*parsed)
                               : "";
  if (!exit && hint.empty())
    session.complain(exit.error());
  else if (!exit)
    session.complain(fmt::format("{}; {}", exit.error().message(), hint));
  else if (!hint.empty())
    session.complain(hint);
  return session.finish(exit.value_or(Exit::kCouldNotLook));
}

}  // namespace postflight
