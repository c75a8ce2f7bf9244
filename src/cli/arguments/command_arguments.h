#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace postflight {

// CLI11 takes a word like [a,b] for a list of words, of a positional too. Words
// reach it with a mark behind that bracket, which every text that is declared
// here loses again; whoever else shows a word removes it with erase_guards().
void guard_words(std::vector<std::string>& words);
void erase_guards(std::string& text);

// One option or positional that was declared, to say more about it. Valid
// while the program's description lives.
class Parameter {
 public:
  explicit Parameter(CLI::Option* option) : option_(option) {}

  Parameter& required();
  Parameter& one_of(std::vector<std::string> values);
  Parameter& between(std::size_t least, std::size_t most);
  // Of a list: "a,b" is two values.
  Parameter& separated_by(char delimiter);
  // Of a list: each value has the option before it (-w a -w b). Otherwise an
  // option takes all the words that follow it, be they meant for it or not.
  Parameter& one_value_each();
  // Of a list that may be absent: if it is there, it isn't empty.
  Parameter& at_least_one();

 private:
  CLI::Option* option_;
};

// Declares the options of one command. Parsing writes into the targets, which
// live until the command has run and keep their values where an option is not
// given. Behind it is CLI11, whose header takes a compiler seconds wherever it
// is included; so commands see only this.
class CommandArguments {
 public:
  // `threads` is where --threads goes, for commands that take it.
  CommandArguments(CLI::App& app, std::size_t& threads)
      : app_(app), threads_(threads) {}

  // "-q,--quiet"
  void flag(const std::string& names, bool& target, const std::string& help);
  // `value` is what help shows for the value: "FILE". A target is a text, a
  // number, a list of these or an optional of any; command_arguments.cc names
  // the types that commands have needed.
  template <typename Target>
  Parameter option(const std::string& names, Target& target,
                   const std::string& value, const std::string& help);
  // A word without a dash, or for a list all of them.
  template <typename Target>
  Parameter positional(const std::string& name, Target& target,
                       const std::string& help);
  // --threads, which Session::context() carries.
  void threads(const std::string& value, const std::string& help);

 private:
  CLI::App& app_;
  std::size_t& threads_;
};

}  // namespace postflight
