#include "base/suggestion.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace postflight {
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

std::optional<std::string> suggestion(std::string_view typed,
                                      std::span<const std::string> words) {
  constexpr std::size_t kLongestWord = 40;
  if (typed.size() > kLongestWord)
    return std::nullopt;
  std::optional<std::string> best;
  // If half the letters differ, it is another word.
  std::size_t least = std::max<std::size_t>(typed.size() / 2, 2);
  for (const std::string& word : words) {
    const bool completes = typed.size() > 2 && word.starts_with(typed);
    const std::size_t distance = completes ? 1 : edit_distance(typed, word);
    // "--rank" is rather "--ranks" than "--rank-pattern".
    if (distance < least || (completes && distance == least && best &&
                             word.size() < best->size())) {
      least = distance;
      best = word;
    }
  }
  return best;
}

}  // namespace postflight
