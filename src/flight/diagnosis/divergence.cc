#include "flight/diagnosis/divergence.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>

#include "base/worker_pool.h"

namespace postflight {
namespace {

class Search {
 public:
  explicit Search(const Matching& matching) : matching_(matching) {}

  std::optional<Divergence> in(GroupId group) const {
    RowWalk rows(matching_.lanes(group));
    while (const Row* const row = rows.next())
      if (std::optional<Disagreement> found = matching_.compare(group, *row);
          found && found->blocks)
        return Divergence{group, row->sequence, *std::move(found), 0};
    return std::nullopt;
  }

  // By how many positions the minority's later operations are shifted against
  // those of the majority; 0 if they are not.
  int skipped(const Divergence& divergence) const {
    constexpr int kFarthest = 64;
    const Lane* const few =
        matching_.lane(divergence.group, divergence.disagreement.suspects[0]);
    const Lane* many = nullptr;
    for (const Lane& lane : matching_.lanes(divergence.group))
      if (lane.dump != nullptr && lane.find(divergence.sequence) != nullptr &&
          !std::ranges::binary_search(divergence.disagreement.suspects,
                                      lane.rank) &&
          (many == nullptr || lane.slots.size() > many->slots.size()))
        many = &lane;
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    if (few == nullptr || many == nullptr ||
        divergence.sequence > kLast - std::int64_t{2} * kFarthest)
      return 0;
    for (int distance = 1; distance <= kFarthest; ++distance) {
      if (equal_from(*few, divergence.sequence, *many,
                     divergence.sequence + distance))
        return distance;
      if (equal_from(*many, divergence.sequence, *few,
                     divergence.sequence + distance))
        return -distance;
    }
    return 0;
  }

 private:
  // Whether the next operations of both are equal: up to eight, and at least
  // two.
  bool equal_from(const Lane& a, std::int64_t a_first, const Lane& b,
                  std::int64_t b_first) const {
    constexpr int kEnough = 8;
    int equal = 0;
    for (; equal < kEnough; ++equal) {
      const Slot* const in_a = a.find(a_first + equal);
      const Slot* const in_b = b.find(b_first + equal);
      if (in_a == nullptr || in_b == nullptr)
        break;
      if (matching_.calls().meaning(a.dump->entries.call(in_a->entry)) !=
          matching_.calls().meaning(b.dump->entries.call(in_b->entry)))
        return false;
    }
    return equal >= 2;
  }

  const Matching& matching_;
};

}  // namespace

std::vector<Divergence> find_divergences(const Matching& matching,
                                         const Context& context) {
  const Search search(matching);
  std::vector<Divergence> found;
  [[maybe_unused]] const Result<> searched =
      WorkerPool(context.threads)
          .map_ordered(
              matching.job().groups.size(),
              [&](std::size_t group) {
                std::optional<Divergence> divergence =
                    search.in({static_cast<std::uint32_t>(group)});
                if (divergence)
                  divergence->skipped = search.skipped(*divergence);
                return divergence;
              },
              [&](std::size_t,
                  std::optional<Divergence> divergence) -> Result<> {
                if (divergence)
                  found.push_back(*std::move(divergence));
                return {};
              });
  assert(searched);
  return found;
}

}  // namespace postflight
