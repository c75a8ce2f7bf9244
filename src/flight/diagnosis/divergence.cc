// Of two roots of one scatter or gather the calls do not tell which one is
// wrong; the operations before and after may. Programs keep one root, or pass
// it on from one operation to the next by a fixed step. If the roots of all
// other operations of that kind in the group do so, and only one of the two is
// the next in turn, the other is wrong. A root that is chosen in another way,
// say, by who found the best result, leaves it open.
#include "flight/diagnosis/divergence.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

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
          found && found->blocks) {
        Divergence divergence{group, row->sequence, *std::move(found)};
        settle_root(divergence);
        return divergence;
      }
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
  // The roots of a kind of operation of a group, by its place among these.
  struct Roots {
    std::vector<std::pair<std::size_t, std::size_t>> known;  // place, member
    std::size_t disputed = 0;                                // the place
  };

  Roots roots_of(const Divergence& divergence) const {
    const Calls& calls = matching_.calls();
    const std::span<const Lane> lanes = matching_.lanes(divergence.group);
    const std::string_view name =
        calls.operation(divergence.disagreement.majority_call).name;
    Roots roots;
    std::size_t place = 0;
    RowWalk rows(lanes);
    while (const Row* const row = rows.next()) {
      std::vector<std::size_t> claims;
      bool named = false;
      for (const Row::Member& member : row->members) {
        const CallId call =
            lanes[member.lane].dump->entries.call(member.slot->entry);
        named |= calls.operation(call).name == name;
        if (calls.is_root(call, lanes.size()))
          claims.push_back(member.lane);
      }
      if (!named)
        continue;
      if (row->sequence == divergence.sequence)
        roots.disputed = place;
      else if (claims.size() == 1)
        roots.known.emplace_back(place, claims[0]);
      ++place;
    }
    return roots;
  }

  // The members whose turn it can be to be the root.
  static std::set<std::size_t> in_turn(const Roots& roots,
                                       std::size_t members) {
    constexpr std::size_t kEnough = 3;
    std::set<std::size_t> found;
    if (roots.known.size() < kEnough)
      return found;
    const auto [start, first] = roots.known[0];
    for (std::size_t step = 0; step < members; ++step) {
      const auto member_at = [&, start = start,
                              first = first](std::size_t place) {
        const std::size_t steps = place < start
                                      ? members - (start - place) % members
                                      : (place - start) % members;
        return (first + steps * step) % members;
      };
      if (std::ranges::all_of(roots.known, [&](const auto& known) {
            return member_at(known.first) == known.second;
          }))
        found.insert(member_at(roots.disputed));
    }
    return found;
  }

  void settle_root(Divergence& divergence) const {
    Disagreement& found = divergence.disagreement;
    const std::span<const Lane> lanes = matching_.lanes(divergence.group);
    const bool roots = std::ranges::all_of(found.suspects, [&](Rank rank) {
      const Lane* const lane = matching_.lane(divergence.group, rank);
      const Slot* const slot = lane->find(divergence.sequence);
      return matching_.calls().is_root(lane->dump->entries.call(slot->entry),
                                       lanes.size());
    });
    if (found.difference != Difference::kSizes || found.decided || !roots)
      return;
    const std::set<std::size_t> turn =
        in_turn(roots_of(divergence), lanes.size());
    std::vector<Rank> wrong = found.suspects;
    std::erase_if(wrong, [&](Rank rank) {
      return std::ranges::any_of(
          turn, [&](std::size_t member) { return lanes[member].rank == rank; });
    });
    if (wrong.size() + 1 != found.suspects.size())
      return;
    found.suspects = found.differing = wrong;
    found.decided = divergence.inferred = true;
    found.text = wrong.size() == 1 ? "took itself for the root of"
                                   : "took themselves for the root of";
  }

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
  const InterruptionScope to_the_end(nullptr);
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
