#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace postflight {

// Reads one word of the command line into a target: text as it stands, numbers
// in decimal. A list gets one more element.
Result<> read_word(std::string_view word, std::string& target);
Result<> read_word(std::string_view word, std::int32_t& target);
Result<> read_word(std::string_view word, std::int64_t& target);
Result<> read_word(std::string_view word, std::uint32_t& target);
Result<> read_word(std::string_view word, std::uint64_t& target);
template <class Element>
Result<> read_word(std::string_view word, std::vector<Element>& target) {
  return read_word(word, target.emplace_back());
}
template <class Value>
Result<> read_word(std::string_view word, std::optional<Value>& target) {
  return read_word(word, target ? *target : target.emplace());
}

template <class Target>
inline constexpr bool kIsList = false;
template <class Element>
inline constexpr bool kIsList<std::vector<Element>> = true;
template <class Value>
inline constexpr bool kIsList<std::optional<Value>> = kIsList<Value>;

// One option, flag or positional of a command: what the parser, --help, the man
// page and the completions know of it.
struct Parameter {
  enum class Form : std::uint8_t {
    kFlag,        // --json
    kOption,      // --rank N
    kPositional,  // DIR
    kAnswer,      // a flag that is answered instead of a run: --help
  };

  Form form = Form::kOption;
  std::vector<std::string> names;  // "-q", "--quiet"; "DIR" of a positional
  std::string value = {};          // what help shows for the value: "FILE"
  std::string help = {};
  std::function<Result<>(std::string_view word)> take = {};
  bool list = false;  // may be given more than once
  bool is_required = false;
  bool takes_several = false;
  char separator = '\0';
  std::vector<std::string> choices = {};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};

  bool is_positional() const { return form == Form::kPositional; }
  // Whether a word belongs to it.
  bool has_value() const {
    return form == Form::kOption || form == Form::kPositional;
  }
  // "--quiet", the name that messages use.
  const std::string& name() const { return names.back(); }

  Parameter& required();
  Parameter& one_of(std::vector<std::string> values);
  Parameter& between(std::uint64_t least, std::uint64_t most);
  // Of a list: with ',' "a,b" is two values.
  Parameter& separated_by(char delimiter);
  // Of a list: all words up to the next option are values, as with argparse's
  // nargs="+". Otherwise each value needs the option before it.
  Parameter& several();

  // Checks and stores a word, or with a separator each part of it.
  Result<> store(std::string_view word) const;

 private:
  Result<> store_one(std::string_view word) const;
};

}  // namespace postflight
