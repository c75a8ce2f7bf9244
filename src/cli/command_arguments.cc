#include "cli/command_arguments.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

namespace postflight {

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
  return Parameter(app_.add_option(names, target, help)->option_text(value));
}

template <typename Target>
Parameter CommandArguments::positional(const std::string& name, Target& target,
                                       const std::string& help) {
  // The blank keeps CLI11 from saying what type it is.
  return option(name, target, " ", help);
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
