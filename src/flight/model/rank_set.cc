#include "flight/model/rank_set.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

namespace postflight {
namespace {

// The length of the run of equally spaced ranks at the front.
std::size_t run_length(std::span<const Rank> ranks) {
  if (ranks.size() < 2)
    return ranks.size();
  const std::int32_t stride = ranks[1].value - ranks[0].value;
  std::size_t length = 2;
  while (length < ranks.size() &&
         ranks[length].value - ranks[length - 1].value == stride)
    ++length;
  return length;
}

std::optional<std::int64_t> selected_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

std::string rank_set_text(std::span<const Rank> ranks) {
  if (ranks.empty())
    return "none";
  std::string text;
  while (!ranks.empty()) {
    if (!text.empty())
      text += ',';
    const std::size_t length = run_length(ranks);
    const std::int32_t stride =
        length > 1 ? ranks[1].value - ranks[0].value : 1;
    // With a stride, a range takes three ranks: "0,8" is shorter than "0-8:8".
    if (length >= 3 || (length == 2 && stride == 1)) {
      text += fmt::format("{}-{}", ranks[0].value, ranks[length - 1].value);
      if (stride != 1)
        text += fmt::format(":{}", stride);
      ranks = ranks.subspan(length);
    } else {
      text += fmt::format("{}", ranks[0].value);
      ranks = ranks.subspan(1);
    }
  }
  return text;
}

std::string ranks_label(std::span<const Rank> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s",
                     rank_set_text(ranks));
}

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

Result<NumberSelection> NumberSelection::parse(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  NumberSelection selection;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t colon = std::min(part.find(':'), part.size());
    const std::string_view range = part.substr(0, colon);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last =
        dash == range.npos ? range : range.substr(dash + 1);
    const auto from =
        first.empty() && dash != range.npos ? 0 : selected_number(first);
    const auto to =
        last.empty() && dash != range.npos ? kMost : selected_number(last);
    const auto stride =
        colon == part.size() ? 1 : selected_number(part.substr(colon + 1));
    if (!from || !to || !stride || *stride == 0 || *from > *to || range == "-")
      return fail(ErrorKind::kUsage,
                  "'{}' is not a valid range: write 0-3, 0-1016:8 or 5,7",
                  part);
    selection.ranges_.push_back({*from, *to, *stride});
  }
  return selection;
}

bool NumberSelection::has(std::int64_t number) const {
  return all() || std::ranges::any_of(ranges_, [&](const Range& range) {
           return range.first <= number && number <= range.last &&
                  (number - range.first) % range.stride == 0;
         });
}

}  // namespace postflight
