#include "flight/model/member_list.h"

#include <algorithm>
#include <charconv>

namespace postflight {

std::optional<std::vector<Rank>> parse_member_list(std::string_view text) {
  const std::size_t open = text.find_first_not_of(' ');
  if (open == text.npos || (text[open] != '[' && text[open] != '('))
    return std::nullopt;
  const char* next = text.data() + open + 1;
  const char* const end = text.data() + text.size();
  std::vector<Rank> ranks;
  for (;;) {
    while (next < end && (*next == ' ' || *next == ','))
      ++next;
    if (next == end)
      return std::nullopt;
    if (*next == ']' || *next == ')')
      break;
    Rank rank;
    const auto [after, error] = std::from_chars(next, end, rank.value);
    if (error != std::errc() || rank.value < 0)
      return std::nullopt;
    ranks.push_back(rank);
    next = after;
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

const std::vector<Rank>& MemberLists::read(TextId id, std::string_view text) {
  const auto [found, is_new] = lists_.try_emplace(id);
  if (is_new)
    found->second = parse_member_list(text).value_or(std::vector<Rank>());
  return found->second;
}

}  // namespace postflight
