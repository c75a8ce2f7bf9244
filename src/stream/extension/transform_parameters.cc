#include "stream/extension/transform_parameters.h"

#include <algorithm>
#include <charconv>

namespace postflight {

Result<TransformParameters> TransformParameters::parse(std::string_view text) {
  TransformParameters parameters;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = one.find('=');
    if (equals == one.npos || equals == 0 || equals + 1 == one.size())
      return fail(ErrorKind::kUsage,
                  "\"{}\" is no parameter; write name=value, such as level=9",
                  one);
    if (parameters.find(one.substr(0, equals)) != nullptr)
      return fail(ErrorKind::kUsage, "{} is given twice",
                  one.substr(0, equals));
    parameters.values_.emplace_back(one.substr(0, equals),
                                    one.substr(equals + 1));
  }
  return parameters;
}

const std::string* TransformParameters::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, [](const auto& value) {
    return std::string_view(value.first);
  });
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::int64_t> TransformParameters::integer(std::string_view name,
                                                  std::int64_t otherwise,
                                                  std::int64_t low,
                                                  std::int64_t high) const {
  const std::string* const text = find(name);
  if (text == nullptr)
    return otherwise;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stopped, failed] = std::from_chars(text->data(), end, value);
  if (failed != std::errc() || stopped != end || value < low || value > high)
    return fail(ErrorKind::kUsage,
                "{}={} is out of range; {} is a number from {} to {}", name,
                *text, name, low, high);
  return value;
}

Result<std::string_view> TransformParameters::choice(
    std::string_view name, std::span<const std::string_view> choices) const {
  const std::string* const text = find(name);
  if (text == nullptr)
    return choices.front();
  const auto found = std::ranges::find(choices, std::string_view(*text));
  if (found == choices.end())
    return fail(ErrorKind::kUsage, "{}={} is unknown; {} is {}", name, *text,
                name, fmt::join(choices, " or "));
  return *found;
}

}  // namespace postflight
