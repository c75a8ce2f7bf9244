#include "flight/model/number_selection.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace postflight {
namespace {

std::optional<std::int64_t> selected_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

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
                  "'{}' is no range of numbers; write 0-3, 0-1016:8 or 5,7",
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
