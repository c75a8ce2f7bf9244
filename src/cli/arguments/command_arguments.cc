#include "cli/arguments/command_arguments.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

namespace postflight {
namespace {

// The type of one value of an optional or a list.
template <typename Target>
struct Element {
  using Type = Target;
};
template <typename Target>
struct Element<std::optional<Target>> : Element<Target> {};
template <typename Target>
struct Element<std::vector<Target>> : Element<Target> {};

// What is wrong with a number, if anything. CLI11 alone would take -1 for the
// largest size, what is too large for the same, and 010 for 8; so it only gets
// to see decimal numbers that fit.
template <typename Number>
std::string normalize(std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range)
    return text + " is out of range";
  if (error != std::errc() || stop != end)
    return text + (std::is_signed_v<Number> ? " is no whole number"
                                            : " is no whole number from 0 up");
  text = std::to_string(number);
  return "";
}

constexpr char kGuard = '\x1f';

// Takes the mark off that guard_words() put there.
std::string unguard(std::string& text) {
  if (text.ends_with(kGuard))
    text.pop_back();
  return "";
}

}  // namespace

void guard_words(std::vector<std::string>& words) {
  for (std::string& word : words)
    if (word.ends_with(']') || word.ends_with(kGuard))
      word += kGuard;
}

void erase_guards(std::string& text) {
  std::erase(text, kGuard);
}

Parameter& Parameter::required() {
  option_->required();
  return *this;
}

Parameter& Parameter::one_of(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

Parameter& Parameter::between(std::size_t least, std::size_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Parameter& Parameter::separated_by(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Parameter& Parameter::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Parameter& Parameter::at_least_one() {
  option_->expected(1, CLI::detail::expected_max_vector_size);
  return *this;
}

void CommandArguments::flag(const std::string& names, bool& target,
                            const std::string& help) {
  app_.add_flag(names, target, help);
}

template <typename Target>
Parameter CommandArguments::option(const std::string& names, Target& target,
                                   const std::string& value,
                                   const std::string& help) {
  CLI::Option* const option = app_.add_option(names, target, help);
  option->option_text(value);
  using Value = typename Element<Target>::Type;
  if constexpr (std::is_integral_v<Value>)
    option->transform(CLI::Validator(normalize<Value>, ""));
  else
    option->transform(CLI::Validator(unguard, ""));
  return Parameter(option);
}

template <typename Target>
Parameter CommandArguments::positional(const std::string& name, Target& target,
                                       const std::string& help) {
  // The blank keeps CLI11 from saying what type it is.
  return option(name, target, " ", help);
}

void CommandArguments::threads(const std::string& value,
                               const std::string& help) {
  option("--threads", threads_, value, help);
}

// What commands have needed so far.
using Text = const std::string&;
template Parameter CommandArguments::option(Text, std::string&, Text, Text);
template Parameter CommandArguments::option(Text, std::vector<std::string>&,
                                            Text, Text);
template Parameter CommandArguments::option(Text, std::size_t&, Text, Text);
template Parameter CommandArguments::option(Text, std::int64_t&, Text, Text);
template Parameter CommandArguments::option(Text, std::optional<std::string>&,
                                            Text, Text);
template Parameter CommandArguments::option(Text, std::optional<std::int32_t>&,
                                            Text, Text);
template Parameter CommandArguments::option(Text, std::optional<std::uint32_t>&,
                                            Text, Text);
template Parameter CommandArguments::option(
    Text, std::optional<std::vector<std::string>>&, Text, Text);
template Parameter CommandArguments::option(
    Text, std::optional<std::vector<std::int64_t>>&, Text, Text);
template Parameter CommandArguments::positional(Text, std::string&, Text);
template Parameter CommandArguments::positional(Text, std::vector<std::string>&,
                                                Text);

}  // namespace postflight
