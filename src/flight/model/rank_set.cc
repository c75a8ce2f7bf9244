#include "flight/model/rank_set.h"

#include <cstddef>

#include <fmt/format.h>

namespace postflight {
namespace {

// How many ranks from `ranks[0]` on have the same distance.
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
    // "0,8" is shorter than "0-8:8"; with a stride, three make a range.
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

}  // namespace postflight
