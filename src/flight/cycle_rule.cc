#include "flight/rules.h"

#include <algorithm>
#include <map>

#include "flight/evidence.h"

namespace postflight {
namespace {

// Ranks of a circle by the wait that holds each up.
std::map<std::uint32_t, std::vector<std::uint32_t>> sides_of(
    const Case& facts, const WaitRoot& root) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> sides;
  for (const std::uint32_t rank : root.ranks)
    sides[facts.graph.waits_of[rank].front()].push_back(rank);
  return sides;
}

// Ranks whose operation is the one that they are missed in elsewhere.
std::vector<std::uint32_t> strays_of(const Case& facts, const WaitRoot& root) {
  std::vector<std::uint32_t> strays;
  for (const std::uint32_t rank : root.ranks) {
    const Wait& wait = facts.graph.waits[facts.graph.waits_of[rank].front()];
    if (wait.transfer || wait.waiting.size() > 1)
      continue;
    const Entry entry =
        facts.job.find(facts.graph.world[rank])->entries[wait.waiting[0].entry];
    if (meant_for(facts, facts.graph.world[rank], entry.call, entry.stack,
                  wait.group))
      strays.push_back(rank);
  }
  return strays;
}

}  // namespace

std::optional<Verdict> blame_cycle(const Case& facts) {
  const WaitRoot* circle = nullptr;
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind == WaitRoot::Kind::kCycle &&
        (circle == nullptr || root.ranks.size() > circle->ranks.size()))
      circle = &root;
  if (circle == nullptr)
    return std::nullopt;
  const auto sides = sides_of(facts, *circle);
  const auto most = std::ranges::max_element(
      sides, {}, [](const auto& side) { return side.second.size(); });
  const bool clear = most->second.size() * 2 > circle->ranks.size();

  Verdict verdict;
  // A transfer without its other side, between ranks that went on.
  const Wait* unmatched = nullptr;
  for (const std::uint32_t w : circle->waits)
    if (facts.graph.waits[w].transfer && !facts.graph.waits[w].absent.empty())
      unmatched = &facts.graph.waits[w];
  if (unmatched != nullptr) {
    verdict.kind = VerdictKind::kPointToPoint;
    verdict.culprits = ranks_at(facts, unmatched->absent);
    verdict.confidence = Confidence::kLikely;
    // If the other side is held up by a transfer with this very rank, either
    // of them may have left one out.
    const std::uint32_t own = unmatched->waiting[0].rank;
    const Wait& theirs =
        facts.graph.waits[facts.graph.waits_of[unmatched->absent[0]].front()];
    if (theirs.transfer && facts.graph.place(theirs.transfer->peer) == own) {
      verdict.culprits.push_back(facts.graph.world[own]);
      std::ranges::sort(verdict.culprits);
      verdict.confidence = Confidence::kPossible;
    }
    tell_operation(facts, *unmatched, verdict);
    verdict.summary =
        fmt::format("{} never {}", Case::ranks_text(verdict.culprits),
                    facts.missed_text(*unmatched));
    add_waiting(facts, *unmatched, verdict);
    add_last(facts, verdict.culprits, verdict);
    return verdict;
  }

  verdict.kind = VerdictKind::kOrderMismatch;
  std::vector<std::uint32_t> odd = strays_of(facts, *circle);
  const bool strayed = odd.size() == 1;
  if (!strayed) {
    odd.clear();
    for (const auto& [wait, ranks] : sides)
      if (!clear || wait != most->first)
        odd.insert(odd.end(), ranks.begin(), ranks.end());
  }
  verdict.culprits = ranks_at(facts, odd);
  verdict.confidence = clear && odd.size() == 1 ? Confidence::kCertain
                       : clear || strayed       ? Confidence::kLikely
                                                : Confidence::kPossible;
  const Wait& main = facts.graph.waits[most->first];
  tell_operation(facts, main, verdict);
  const Wait& other =
      facts.graph.waits[std::ranges::find_if(sides, [&](const auto& side) {
                          return side.first != most->first;
                        })->first];
  verdict.summary =
      clear ? fmt::format(
                  "{} is in {} while the others wait for it in {}: it "
                  "used the groups in another order",
                  Case::ranks_text(verdict.culprits), facts.wait_text(other),
                  facts.wait_text(main))
            : fmt::format("{} wait for each other in {} and {}",
                          Case::ranks_text(verdict.culprits),
                          facts.wait_text(main), facts.wait_text(other));
  for (const std::uint32_t w : circle->waits)
    add_waiting(facts, facts.graph.waits[w], verdict);
  return verdict;
}

}  // namespace postflight
