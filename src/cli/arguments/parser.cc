#include "cli/arguments/parser.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/suggestion.h"

namespace postflight {
namespace {

bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-';
}

bool is_negative_number(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         word.find_first_not_of("0123456789", 1) == word.npos;
}

class Parser {
 public:
  Parser(const Command& program, std::span<const std::string> words)
      : command_(&program), rest_(words) {}

  Result<Parsed> parse() {
    while (!rest_.empty() && answer_ == nullptr) {
      const std::string_view word = rest_[0];
      rest_ = rest_.subspan(1);
      if (only_positionals_ || !looks_like_option(word))
        TRY(take_positional(word));
      else if (word == "--")
        only_positionals_ = true;
      else if (word.starts_with("--"))
        TRY(take_long(word));
      else
        TRY(take_short(word));
    }
    // A command that only has commands of its own lists them.
    if (answer_ == nullptr && !command_->run)
      answer_ = command_->find_parameter("--help");
    if (answer_ == nullptr)
      TRY(check_complete());
    return Parsed{command_, answer_, std::move(positionals_)};
  }

  const Command& command() const { return *command_; }

 private:
  Result<> take_positional(std::string_view word) {
    if (!only_positionals_ && !has_positional_)
      if (const Command* const below = command_->find(word)) {
        command_ = below;
        return {};
      }
    for (const Parameter& parameter : command_->parameters) {
      if (!parameter.is_positional() ||
          (is_given(parameter) && !parameter.list))
        continue;
      has_positional_ = true;
      given_.push_back(&parameter);
      positionals_.emplace_back(word);
      return parameter.store(word);
    }
    return unknown(word, command_->run ? "an argument" : "a command");
  }

  // --name, --name=value or --name value
  Result<> take_long(std::string_view word) {
    const std::size_t equals = word.find('=');
    const Parameter* const parameter =
        command_->find_parameter(word.substr(0, equals));
    if (parameter == nullptr)
      return unknown(word.substr(0, equals), "an option");
    std::optional<std::string_view> value;
    if (equals != word.npos)
      value = word.substr(equals + 1);
    return take_option(*parameter, value);
  }

  // -n, -nvalue, -n=value or -n value; flags may be joined: -qv
  Result<> take_short(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Parameter* const parameter =
          command_->find_parameter(std::string("-") + word[i]);
      if (parameter == nullptr)
        return unknown(word, "an option");
      if (!parameter->has_value()) {
        TRY(take_option(*parameter, std::nullopt));
        continue;
      }
      std::string_view value = word.substr(i + 1);
      if (value.empty())
        return take_option(*parameter, std::nullopt);
      value.remove_prefix(value[0] == '=' ? 1 : 0);
      return take_option(*parameter, value);
    }
    return {};
  }

  Result<> take_option(const Parameter& parameter,
                       std::optional<std::string_view> value) {
    const bool again = is_given(parameter);
    given_.push_back(&parameter);
    if (!parameter.has_value()) {
      if (value)
        return fail(ErrorKind::kUsage, "{} takes no value", parameter.name());
      if (parameter.form == Parameter::Form::kAnswer) {
        answer_ = &parameter;
        return {};
      }
      return parameter.take("");
    }
    if (again && !parameter.list)
      return fail(ErrorKind::kUsage, "{} is given twice", parameter.name());
    if (!value) {
      if (rest_.empty() || is_option(rest_[0]))
        return fail(ErrorKind::kUsage, "{} needs a value: {} {}",
                    parameter.name(), parameter.name(), parameter.value);
      value = rest_[0];
      rest_ = rest_.subspan(1);
    }
    TRY(parameter.store(*value));
    if (parameter.takes_several)
      for (; !rest_.empty() && !is_option(rest_[0]) &&
             (!looks_like_option(rest_[0]) || is_negative_number(rest_[0]));
           rest_ = rest_.subspan(1))
        TRY(parameter.store(rest_[0]));
    return {};
  }

  // Whether a word is an option of the command rather than the value before it:
  // "-1" and "-" are values.
  bool is_option(std::string_view word) const {
    return word == "--" ||
           command_->find_parameter(word.substr(0, word.find('='))) != nullptr;
  }

  bool is_given(const Parameter& parameter) const {
    return std::ranges::find(given_, &parameter) != given_.end();
  }

  Result<> check_complete() const {
    for (const Parameter& parameter : command_->parameters)
      if (parameter.is_required && !is_given(parameter))
        return fail(ErrorKind::kUsage, "{} is required", parameter.name());
    return {};
  }

  // `kind` is "an option" or the like.
  tl::unexpected<Error> unknown(std::string_view word,
                                std::string_view kind) const {
    // "postflight verify" is "postflight ckpt verify".
    for (const Command& below : command_->commands)
      if (const Command* const nested = below.find(word))
        return fail(ErrorKind::kUsage, "'{}' is not {} of {}; did you mean {}?",
                    word, kind, command_->called(), nested->called());
    std::vector<std::string> known;
    for (const Command& below : command_->commands)
      if (!below.hidden)
        known.emplace_back(below.name);
    // Any two of one letter are equally alike.
    const bool is_letter = word.size() == 2 && word[0] == '-';
    for (const Parameter& parameter : command_->parameters)
      if (!parameter.is_positional())
        std::ranges::copy_if(parameter.names, std::back_inserter(known),
                             [is_letter](const std::string& name) {
                               return !is_letter || name.size() > 2;
                             });
    const std::optional<std::string> meant = suggestion(word, known);
    return fail(ErrorKind::kUsage, "'{}' is not {} of {}{}", word, kind,
                command_->called(),
                meant ? fmt::format("; did you mean {}?", *meant) : "");
  }

  const Command* command_;
  std::span<const std::string> rest_;
  std::vector<const Parameter*> given_;
  std::vector<std::string> positionals_;
  const Parameter* answer_ = nullptr;
  bool only_positionals_ = false;
  bool has_positional_ = false;
};

}  // namespace

Result<Parsed> parse(const Command& program,
                     std::span<const std::string> words) {
  Parser parser(program, words);
  Result<Parsed> parsed = parser.parse();
  if (!parsed)
    return fail(parsed.error().kind(), "{} ({} --help)",
                parsed.error().message(), parser.command().called());
  return parsed;
}

}  // namespace postflight
