#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/arguments/declared.h"
#include "cli/arguments/fr_trace_arguments.h"
#include "cli/arguments/suggestion.h"
#include "cli/command.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::string_view kSentence =
    "Reads what a distributed PyTorch job left behind and says what happened.";

// --json, --color and --quiet, with the same words everywhere.
void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json, "Answer in JSON");
  app.add_option_function<std::string>(
         "--color",
         [&options](const std::string& when) {
           options.colour = when == "always"  ? ColourChoice::kAlways
                            : when == "never" ? ColourChoice::kNever
                                              : ColourChoice::kAuto;
         },
         "When to use colour")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->option_text("auto|always|never");
  app.add_flag("-q,--quiet", options.quiet, "No progress");
}

struct Declared {
  CLI::App* app;
  CommandRun run;
};

// Adds a command to the program or to another command.
void declare(const Command& command, CLI::App& parent, CommonOptions& common,
             std::vector<Declared>& declared) {
  CLI::App* const app = parent.add_subcommand(
      std::string(command.name), help_text(command.sentence, command.examples));
  app->set_help_flag("-h,--help", "Show this help");
  if (command.hidden)
    app->group("");
  // Those inside come first in the list: who runs is the first one parsed.
  for (const Command& inner : command.commands)
    declare(inner, *app, common, declared);
  if (!command.declare) {
    app->require_subcommand(1);
    return;
  }
  CommandArguments arguments(*app, common.threads);
  CommandRun run = command.declare(arguments);
  add_common_options(*app, common);
  declared.push_back({app, std::move(run)});
}

// CLI11's help, but within kHelpWidth, and with the first line alone of what
// each command in the list of commands says of itself.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(kColumn); }

  std::string make_subcommand(const CLI::App* command) const override {
    const std::string name = fmt::format("  {:<9} ", command->get_name());
    const std::string text = command->get_description();
    return name +
           wrapped(text.substr(0, text.find('\n')), name.size(), kHelpWidth,
                   name.size()) +
           "\n";
  }

  // CLI11 indents the lines that follow.
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 0, kHelpWidth - kColumn, 0);
  }

 private:
  static constexpr std::size_t kColumn = 24;
};

// Names that a misspelt word could have meant.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* const child :
       app.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty())
      words.push_back(child->get_name());
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      words.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      words.push_back("-" + name);
  }
  return words;
}

// One line that says what is wrong and what was perhaps meant.
std::string misuse(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty())
    app = app->get_subcommands().front();
  std::string command =
      app == &program ? "postflight" : "postflight " + called(*app);
  std::vector<std::string> extras = program.remaining(true);
  // What follows is a program to run, and is not looked at.
  extras.erase(std::ranges::find(extras, "--"), extras.end());
  if (extras.empty()) {
    std::string text = error.what();
    erase_guards(text);
    return fmt::format("{} ({} --help)", text, command);
  }
  std::string& word = extras.front();
  erase_guards(word);
  const bool runs = app->get_subcommands({}).empty();
  std::string text = fmt::format("'{}' is no {} of {}", word,
                                 word.starts_with('-') ? "option"
                                 : runs                ? "argument"
                                                       : "command",
                                 command);
  if (const auto meant = suggestion(word, known_words(*app)))
    text += fmt::format("; did you mean {}?", *meant);
  return fmt::format("{} ({} --help)", text, command);
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App program(help_text(
      kSentence, {{"postflight trace dumps/", "who is at fault for a hang?"},
                  {"postflight ckpt ls model.pt", "what is in a checkpoint?"},
                  {"postflight pickle model.pt", "what would loading it run?"},
                  {"postflight trace --help", "all about one command"}}));
  program.name("postflight");
  program.formatter(std::make_shared<Help>());
  program.set_help_flag("-h,--help", "Show this help");
  program.set_version_flag("--version", "postflight " POSTFLIGHT_VERSION,
                           "Show the version");
  program.require_subcommand(1);

  const auto common = std::make_shared<CommonOptions>();
  std::vector<Declared> commands;
  for (const Command& command :
       {trace_command(), fr_trace_command(), entries_command(), ckpt_command(),
        pickle_command(), profile_command(), stream_command(),
        version_command(),
        generate_command([&program] { return declared_by(program); })})
    declare(command, program, *common, commands);

  std::vector<std::string> arguments = arguments_with_command(argc, argv);
  if (!arguments.empty() && arguments[0] == "fr-trace")
    if (const Result<> spelt = spell_out_fr_trace_options(arguments); !spelt) {
      Session({}).complain(spelt.error());
      return static_cast<int>(Exit::kCouldNotLook);
    }
  guard_words(arguments);
  try {
    // CLI11 takes them from the end.
    std::ranges::reverse(arguments);
    program.parse(arguments);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    Session session({});
    session.complain(misuse(program, error));
    return static_cast<int>(Exit::kCouldNotLook);
  }
  const auto chosen = std::ranges::find_if(
      commands, [](const Declared& command) { return command.app->parsed(); });
  Session session(*common);
  const Result<Exit> exit = chosen->run(session);
  if (!exit)
    session.complain(exit.error());
  return session.finish(exit.value_or(Exit::kCouldNotLook));
}

}  // namespace postflight
