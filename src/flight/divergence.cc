#include "flight/divergence.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace postflight {
namespace {

// What of a call ranks have to agree on, as a number: calls that differ in
// other things (their rank's own number of the group, the time-out) have the
// same.
class Meanings {
 public:
  explicit Meanings(const Tables& tables) : tables_(&tables) {}

  std::uint32_t of(CallId id) {
    if (known_.size() <= id.value)
      known_.resize(tables_->call_count(), kUnknown);
    std::uint32_t& meaning = known_[id.value];
    if (meaning == kUnknown) {
      const Call& call = tables_->call(id);
      const std::uint32_t parts[] = {
          call.name.value, call.inputs.value, call.outputs.value,
          call.input_dtypes.value, call.output_dtypes.value};
      meaning = meanings_.intern(parts);
    }
    return meaning;
  }

 private:
  static constexpr std::uint32_t kUnknown =
      std::numeric_limits<std::uint32_t>::max();

  const Tables* tables_;
  std::vector<std::uint32_t> known_;
  Interner<std::uint32_t> meanings_;
};

class Search {
 public:
  explicit Search(const Timeline& timeline)
      : timeline_(timeline),
        job_(timeline.job()),
        meanings_(timeline.job().tables) {}

  std::optional<Divergence> in(GroupId group) {
    const std::span<const Lane> lanes = timeline_.lanes(group);
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const Lane& lane : lanes)
      if (!lane.slots.empty()) {
        first = std::min(first, lane.slots.front().sequence);
        last = std::max(last, lane.slots.back().sequence);
      }
    // Each lane is walked once, beside the others.
    std::vector<std::size_t> next(lanes.size(), 0);
    while (first <= last) {
      std::int64_t following = std::numeric_limits<std::int64_t>::max();
      passed_.clear();
      bool same = true;
      std::uint32_t meaning = 0;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const std::vector<Slot>& slots = lanes[i].slots;
        if (next[i] < slots.size() && slots[next[i]].sequence == first) {
          const CallId call = lanes[i].dump->entries.call(slots[next[i]].entry);
          const std::uint32_t own = meanings_.of(call);
          same &= passed_.empty() || own == meaning;
          meaning = own;
          passed_.push_back({lanes[i].rank, call});
          ++next[i];
        }
        if (next[i] < slots.size())
          following = std::min(following, slots[next[i]].sequence);
      }
      if (!same)
        if (std::optional<Disagreement> found =
                compare_arguments(job_, passed_, lanes.size()))
          return Divergence{group, first, *std::move(found), 0};
      first = following;
      if (following == std::numeric_limits<std::int64_t>::max())
        break;
    }
    return std::nullopt;
  }

  // Do the minority's later operations equal those of the majority, moved?
  int skipped(const Divergence& divergence) {
    constexpr int kFarthest = 64;
    const Lane* const few =
        timeline_.lane(divergence.group, divergence.disagreement.minority[0]);
    const Lane* many = nullptr;
    for (const Lane& lane : timeline_.lanes(divergence.group))
      if (lane.dump != nullptr && lane.find(divergence.sequence) != nullptr &&
          !std::ranges::binary_search(divergence.disagreement.minority,
                                      lane.rank) &&
          (many == nullptr || lane.slots.size() > many->slots.size()))
        many = &lane;
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    if (few == nullptr || many == nullptr ||
        divergence.sequence > kLast - 2 * kFarthest)
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
  // At least three in a row, or all there are if the first is a telling one.
  bool equal_from(const Lane& a, std::int64_t a_first, const Lane& b,
                  std::int64_t b_first) {
    constexpr int kEnough = 8;
    int equal = 0;
    for (; equal < kEnough; ++equal) {
      const Slot* const in_a = a.find(a_first + equal);
      const Slot* const in_b = b.find(b_first + equal);
      if (in_a == nullptr || in_b == nullptr)
        break;
      if (meanings_.of(a.dump->entries.call(in_a->entry)) !=
          meanings_.of(b.dump->entries.call(in_b->entry)))
        return false;
    }
    return equal >= 2;
  }

  const Timeline& timeline_;
  const Job& job_;
  Meanings meanings_;
  std::vector<Passed> passed_;
};

}  // namespace

std::vector<Divergence> find_divergences(const Timeline& timeline) {
  Search search(timeline);
  std::vector<Divergence> found;
  for (std::uint32_t g = 0; g < timeline.job().groups.size(); ++g)
    if (std::optional<Divergence> divergence = search.in({g})) {
      divergence->skipped = search.skipped(*divergence);
      found.push_back(*std::move(divergence));
    }
  return found;
}

}  // namespace postflight
