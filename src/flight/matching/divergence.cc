#include "flight/matching/divergence.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string_view>

#include "base/worker_pool.h"

namespace postflight {
namespace {

// What of a call ranks have to agree on, as a number: calls that differ in
// other things (their rank's own number of the group, the time-out) have the
// same.
class Meanings {
 public:
  explicit Meanings(const Tables& tables) {
    Interner<std::uint32_t> meanings;
    meanings_.reserve(tables.call_count());
    for (std::uint32_t id = 0; id < tables.call_count(); ++id) {
      const Call& call = tables.call({id});
      const std::uint32_t parts[] = {
          call.name.value, call.inputs.value, call.outputs.value,
          call.input_dtypes.value, call.output_dtypes.value};
      meanings_.push_back(meanings.intern(parts));
    }
  }

  std::uint32_t of(CallId id) const { return meanings_[id.value]; }

 private:
  std::vector<std::uint32_t> meanings_;
};

class Search {
 public:
  explicit Search(const Timeline& timeline)
      : timeline_(timeline),
        job_(timeline.job()),
        meanings_(timeline.job().tables) {}

  std::optional<Divergence> in(GroupId group) const {
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
    std::vector<Passed> passed;
    while (first <= last) {
      std::int64_t following = std::numeric_limits<std::int64_t>::max();
      passed.clear();
      bool same = true;
      std::uint32_t meaning = 0;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const std::vector<Slot>& slots = lanes[i].slots;
        if (next[i] < slots.size() && slots[next[i]].sequence == first) {
          const CallId call = lanes[i].dump->entries.call(slots[next[i]].entry);
          const std::uint32_t own = meanings_.of(call);
          same &= passed.empty() || own == meaning;
          meaning = own;
          passed.push_back({lanes[i].rank, call});
          ++next[i];
        }
        if (next[i] < slots.size())
          following = std::min(following, slots[next[i]].sequence);
      }
      if (!same)
        if (std::optional<Disagreement> found =
                compare_arguments(job_, passed, lanes.size()))
          return Divergence{group, first, *std::move(found), 0};
      first = following;
      if (following == std::numeric_limits<std::int64_t>::max())
        break;
    }
    return std::nullopt;
  }

  // Do the minority's later operations equal those of the majority, moved?
  int skipped(const Divergence& divergence) const {
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
  // At least three in a row, or all there are if the first is a telling one.
  bool equal_from(const Lane& a, std::int64_t a_first, const Lane& b,
                  std::int64_t b_first) const {
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
};

}  // namespace

std::vector<Divergence> find_divergences(const Timeline& timeline) {
  const Search search(timeline);
  std::vector<Divergence> found;
  [[maybe_unused]] const Result<> searched = WorkerPool().map_ordered(
      timeline.job().groups.size(),
      [&](std::size_t group) {
        std::optional<Divergence> divergence =
            search.in({static_cast<std::uint32_t>(group)});
        if (divergence)
          divergence->skipped = search.skipped(*divergence);
        return divergence;
      },
      [&](std::size_t, std::optional<Divergence> divergence) -> Result<> {
        if (divergence)
          found.push_back(*std::move(divergence));
        return {};
      });
  assert(searched);
  return found;
}

}  // namespace postflight
