#include "joblog/host_fields.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"
#include "joblog/node_list.h"

namespace postflight {

std::optional<std::uint32_t> count_in(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || last != end || value > 0x7fffffff)
    return std::nullopt;
  return value;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == text.back() &&
      (text.front() == '"' || text.front() == '\''))
    return text.substr(1, text.size() - 2);
  return text;
}

std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || kSpaces.find(line[i - 1]) != kSpaces.npos))
      return trimmed(line.substr(0, i));
  return trimmed(line);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(kSpaces), rest.size());
    std::string_view field = rest.substr(0, end);
    rest = trimmed(rest.substr(end));
    while (!rest.empty() && field.ends_with(','))
      field.remove_suffix(1);
    if (!field.empty())
      fields.push_back(unquoted(field));
  }
  if (fields.size() != 1)
    return fields;
  std::string_view list = fields[0];
  fields.clear();
  while (!list.empty())
    fields.push_back(unquoted(take_list_item(list)));
  return fields;
}

bool is_rank_set(std::string_view text) {
  return !text.empty() && is_digit(text.front()) &&
         text.find_first_not_of("0123456789-,") == text.npos;
}

bool is_host_expression(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_:@%[],").find(c) != std::string_view::npos;
  });
}

std::optional<std::string_view> task_counts(std::string_view word) {
  constexpr std::array<std::string_view, 3> kNames = {
      "--ntasks-per-node=", "ntasks-per-node=", "tasks-per-node="};
  for (const std::string_view name : kNames)
    if (word.starts_with(name))
      return word.substr(name.size());
  if (word.size() > 1 && word[0] == 'x' && is_digit(word[1]))
    return word.substr(1);
  if (!word.empty() && is_digit(word[0]) && word.find("(x") != word.npos)
    return word;
  return std::nullopt;
}

}  // namespace postflight
