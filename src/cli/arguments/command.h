#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/arguments/parameter.h"

namespace postflight {

class CommandArguments;
class Session;
struct CommonOptions;
enum class Exit : int;

// Runs a command whose options are parsed. The program prints an error and
// exits with kCouldNotLook.
using CommandRun = std::function<Result<Exit>(Session&)>;

struct Example {
  std::string_view line;
  std::string_view what;
};

// One command of the program, or the program itself. This is the only
// declaration of it: the parser, --help, the man page and the completions are
// all made from it.
struct Command {
  std::string_view name;
  // What it does, in one sentence on the first line; more may follow.
  std::string_view sentence;
  std::vector<Example> examples;
  // Declares the parameters and returns what runs the command, which may own
  // their targets. A command that only has commands of its own (`ckpt`) has
  // none.
  std::function<CommandRun(CommandArguments& arguments)> declare;
  bool hidden = false;  // from help, man page and completions
  std::vector<Command> commands = {};

  // Filled by declare_parameters().
  std::string path = {};  // as it is called: "ckpt ls", empty for the program
  std::vector<Parameter> parameters = {};
  CommandRun run = {};

  // "postflight ckpt ls"
  std::string called() const;
  // nullptr if there is none.
  const Command* find(std::string_view command) const;
  const Parameter* find_parameter(std::string_view parameter) const;
};

// Declares the parameters of one command. Parsing writes into the targets,
// which keep their values where an option is not given. A target is a text, a
// number, a list of these, or an optional of any. The Parameter returned is
// valid until the next is declared.
class CommandArguments {
 public:
  // `common` has the targets of --threads and --force, for commands that take
  // them.
  CommandArguments(std::vector<Parameter>& parameters, CommonOptions& common)
      : parameters_(parameters), common_(common) {}

  // Several names are separated by a comma, the short one first: "-q,--quiet".
  Parameter& flag(std::string_view names, bool& target, std::string_view help);
  // `value` is what help shows for the value: "FILE".
  template <class Target>
  Parameter& option(std::string_view names, Target& target,
                    std::string_view value, std::string_view help) {
    return add(Parameter::Form::kOption, names, target, value, help);
  }
  // A word without a dash; for a list, all of them.
  template <class Target>
  Parameter& positional(std::string_view name, Target& target,
                        std::string_view help) {
    return add(Parameter::Form::kPositional, name, target, "", help);
  }
  // --threads, which Session::context() carries.
  Parameter& threads(std::string_view value, std::string_view help);
  // --force, for commands that write files: Session::existing().
  Parameter& force();
  // A flag that the program answers itself: --help.
  Parameter& answer(std::string_view names, std::string_view help);

 private:
  template <class Target>
  Parameter& add(Parameter::Form form, std::string_view names, Target& target,
                 std::string_view value, std::string_view help) {
    Parameter& parameter = add(form, names, help);
    parameter.value = value;
    parameter.list = kIsList<Target>;
    parameter.take = [&target](std::string_view word) {
      return read_word(word, target);
    };
    return parameter;
  }
  Parameter& add(Parameter::Form form, std::string_view names,
                 std::string_view help);

  std::vector<Parameter>& parameters_;
  CommonOptions& common_;
};

// Fills `parameters`, `run` and `path` of a command and those below it, with
// --help first and `common` last.
void declare_parameters(
    Command& command, CommonOptions& options,
    const std::function<void(CommandArguments& arguments)>& common);

// The commands that can be run and are not hidden, each before those below it.
// Valid while `program` lives.
std::vector<const Command*> runnable_commands(const Command& program);

}  // namespace postflight
