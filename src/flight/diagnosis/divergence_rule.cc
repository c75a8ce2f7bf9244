// Ranks that called something else than the others with the same number:
// another operation, other sizes or dtypes, or the same on another group.
//
// The evidence is the first row of a group whose calls can't work together, and
// that the group is stuck from there on or others wait for the odd ones. The
// majority is right; between equal sides the one that strayed from its group is
// wrong, or it is unknown. Calls that are those of the others shifted tell that
// an operation was skipped or added. As calls don't change, it does not matter
// when each rank dumped, and the verdict may be certain.
//
// What fools it: a majority that is wrong, as after a bad release on most
// hosts. Operations that differ by right (rooted ones, all_to_all with splits)
// are for Calls to know. What is no longer in a ring, or was done in a dump of
// active work only, can't be compared: the first difference that is left is
// named.
#include <algorithm>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

VerdictKind kind_of(Difference difference) {
  switch (difference) {
    case Difference::kOperation:
    case Difference::kBatch:
      return VerdictKind::kTypeMismatch;
    case Difference::kSizes:
      return VerdictKind::kSizeMismatch;
    case Difference::kDtypes:
      return VerdictKind::kDtypeMismatch;
    case Difference::kNone:
      break;
  }
  return VerdictKind::kInconclusive;
}

// Whether it can have caused the hang: its group is stuck from there on, or
// others wait for one of the suspects.
bool matters(const Case& facts, const Divergence& divergence) {
  const std::vector<Rank>& odd = divergence.disagreement.suspects;
  const auto is_odd = [&](std::uint32_t place) {
    return std::ranges::binary_search(odd, facts.graph.world[place]);
  };
  return std::ranges::any_of(facts.graph.waits, [&](const Wait& wait) {
    return (wait.group == divergence.group && !wait.transfer &&
            wait.sequence >= divergence.sequence) ||
           std::ranges::any_of(wait.absent, is_odd) ||
           std::ranges::any_of(wait.busy, is_odd);
  });
}

std::int64_t time_of(const Case& facts, const Divergence& divergence) {
  std::int64_t time = 0;
  for (const Lane& lane : facts.matching.lanes(divergence.group))
    if (const Slot* const slot = lane.find(divergence.sequence)) {
      const std::int64_t own = lane.dump->entries.created(slot->entry);
      time = time == 0 ? own : std::min(time, own);
    }
  return time;
}

Entry entry_at(const Case& facts, const Divergence& divergence, Rank rank) {
  const Lane* const lane = facts.matching.lane(divergence.group, rank);
  return lane->dump->entries[lane->find(divergence.sequence)->entry];
}

// A call on one group that was meant for another.
struct MisplacedCall {
  GroupId used;
  GroupId meant;
  std::string operation;
};

// The misplaced call of `rank`: its call there was meant for another group, or
// it made the call of one of `others` on another group, alone.
std::optional<MisplacedCall> stray_of(const Case& facts,
                                      const Divergence& divergence, Rank rank,
                                      const std::vector<Rank>& others) {
  if (const Wait* const meant = meant_for(
          facts, rank, entry_at(facts, divergence, rank), divergence.group))
    return MisplacedCall{divergence.group, meant->group,
                         facts.operation_text(*meant)};
  for (const Rank other : others)
    if (const Wait* const used = strayed_to(
            facts, rank, entry_at(facts, divergence, other), divergence.group);
        used != nullptr && other != rank)
      return MisplacedCall{used->group, divergence.group,
                           facts.operation_text(*used)};
  return std::nullopt;
}

// Between sides of equal size, the rank that used the wrong group is at fault.
void decide_by_group(const Case& facts, const Divergence& divergence,
                     Disagreement& found) {
  if (found.decided)
    return;
  std::vector<Rank> strayed;
  for (const Rank rank : found.suspects)
    if (stray_of(facts, divergence, rank, found.suspects))
      strayed.push_back(rank);
  if (strayed.size() == 1 && found.suspects.size() > 1) {
    found.suspects = strayed;
    found.decided = true;
  }
}

}  // namespace

std::optional<Verdict> blame_divergence(const Case& facts) {
  const Divergence* first = nullptr;
  for (const Divergence& divergence : facts.divergences) {
    if (!matters(facts, divergence))
      continue;
    const bool better =
        first == nullptr ||
        std::pair(!divergence.disagreement.decided,
                  time_of(facts, divergence)) <
            std::pair(!first->disagreement.decided, time_of(facts, *first));
    if (better)
      first = &divergence;
  }
  if (first == nullptr)
    return std::nullopt;
  Disagreement found = first->disagreement;
  decide_by_group(facts, *first, found);

  Verdict verdict;
  verdict.kind = kind_of(found.difference);
  verdict.culprits = found.suspects;
  verdict.group = first->group;
  verdict.operation =
      facts.job.operation(facts.job.tables.call(found.majority_call)).name;
  verdict.sequence = first->sequence;
  const std::size_t members = facts.matching.lanes(first->group).size();
  verdict.confidence =
      !found.decided ? Confidence::kPossible
      : !first->inferred && found.suspects.size() * 3 <= members
          ? Confidence::kCertain
          : Confidence::kLikely;
  verdict.summary = fmt::format(
      "{} {} {} #{} of {}", Case::ranks_text(found.suspects), found.text,
      verdict.operation, first->sequence, facts.group_text(first->group));
  for (const Lane& other : facts.matching.lanes(first->group))
    if (const Slot* const at = other.find(first->sequence);
        at != nullptr && verdict.evidence.size() < 64)
      verdict.evidence.push_back(
          {other.rank, at->entry,
           std::ranges::binary_search(found.suspects, other.rank)
               ? EvidenceRole::kDiffers
               : EvidenceRole::kMajority});
  std::vector<Rank> others;
  for (const Evidence& evidence : verdict.evidence)
    if (evidence.role == EvidenceRole::kMajority)
      others.push_back(evidence.rank);
  if (const std::optional<MisplacedCall> stray =
          found.suspects.size() == 1
              ? stray_of(facts, *first, found.suspects[0], others)
              : std::nullopt) {
    verdict.kind = VerdictKind::kOrderMismatch;
    verdict.summary = fmt::format(
        "{} called {} on {} instead of {}", Case::ranks_text(found.suspects),
        stray->operation, facts.group_text(stray->used),
        facts.group_text(stray->meant));
    verdict.findings.push_back(
        {"wrong_group", Severity::kError, verdict.summary, ""});
  } else if (first->skipped != 0) {
    const int count = std::abs(first->skipped);
    verdict.findings.push_back(
        {first->skipped > 0 ? "skipped_operation" : "extra_operation",
         Severity::kError,
         fmt::format("{} {} {} operation{} of {} before #{}: its later "
                     "operations match those of the others, shifted",
                     Case::ranks_text(found.suspects),
                     first->skipped > 0 ? "skipped" : "added", count,
                     count == 1 ? "" : "s", facts.group_text(first->group),
                     first->sequence),
         ""});
  }
  if (!found.decided)
    verdict.findings.push_back({"undecided", Severity::kNote,
                                "the sides have equally many ranks, so it is "
                                "unknown which one is wrong",
                                ""});
  return verdict;
}

}  // namespace postflight
