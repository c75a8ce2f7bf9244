#include "pickle/audit/expansion.h"

#include <cstddef>
#include <limits>
#include <unordered_map>
#include <vector>

#include "pickle/parts.h"

namespace postflight {
namespace {

// Nobody shares more containers than this for the sake of expansion.
constexpr std::size_t kMostContainers = 1'000'000;

struct Place {
  Value value;
  std::size_t next = 0;
  std::uint64_t count = 1;
};

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

std::uint64_t expanded_count(const Value& root) {
  std::unordered_map<const void*, std::uint64_t> known;  // 1 while on the path
  std::vector<Place> path = {{root}};
  known.emplace(root.identity(), 1);
  for (;;) {
    Place& place = path.back();
    if (place.next == part_count(place.value)) {
      const std::uint64_t count = place.count;
      known[place.value.identity()] = count;
      path.pop_back();
      if (path.empty())
        return count;
      path.back().count = saturated_sum(path.back().count, count);
      continue;
    }
    const Value part = part_at(place.value, place.next++).value;
    const void* const identity = part.identity();
    if (identity == nullptr || part_count(part) == 0) {
      place.count = saturated_sum(place.count, 1);
      continue;
    }
    const auto [seen, is_new] = known.try_emplace(identity, 1);
    if (!is_new || known.size() > kMostContainers) {
      place.count = saturated_sum(place.count, seen->second);
      continue;
    }
    path.push_back({part});
  }
}

}  // namespace postflight
