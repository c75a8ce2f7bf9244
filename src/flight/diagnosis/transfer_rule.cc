// A send and its receive that differ in size or dtype never end, or end with
// the wrong data. Both ranks stand still then, and no other looks wrong.
//
// The evidence is the oldest pair of a channel of which a side is not done.
// Which side is wrong shows where the channel's other transfers are all alike:
// the one that differs from those. Otherwise both are named.
//
// What fools it: a channel that carries several shapes by turns, of which it is
// not known how many transfers a ring has lost, or whose other side dumped
// earlier, so that the wrong two are compared. Pairs are then left alone.
#include <algorithm>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

const RankDump& dump_at(const Case& facts, TransferPlace place) {
  return facts.job.ranks[place.rank];
}

CallId made_at(const Case& facts, TransferPlace place) {
  return dump_at(facts, place)
      .entries.call(facts.matching.transfer(place).entry);
}

// A send, its receive, and how they differ.
struct UnequalPair {
  TransferPlace send;
  TransferPlace receive;
  Disagreement disagreement;
};

// The call that all others of one side make; nothing if these differ.
std::optional<CallId> usual_call(const Case& facts,
                                 const std::vector<TransferPlace>& side,
                                 std::size_t odd) {
  std::optional<CallId> usual;
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (i == odd)
      continue;
    const CallId call = made_at(facts, side[i]);
    if (usual && facts.matching.calls().meaning(*usual) !=
                     facts.matching.calls().meaning(call))
      return std::nullopt;
    usual = call;
  }
  return usual;
}

std::optional<UnequalPair> unequal_in(const Case& facts,
                                      const Channel& channel) {
  const auto first = std::min(
      static_cast<std::ptrdiff_t>(channel.sends_done),
      static_cast<std::ptrdiff_t>(channel.receives_done) + channel.shift);
  const std::ptrdiff_t second = first - channel.shift;
  if (first < 0 || second < 0 ||
      first >= static_cast<std::ptrdiff_t>(channel.sends.size()) ||
      second >= static_cast<std::ptrdiff_t>(channel.receives.size()))
    return std::nullopt;
  const auto sent = static_cast<std::size_t>(first);
  const auto received = static_cast<std::size_t>(second);
  UnequalPair pair{channel.sends[sent], channel.receives[received], {}};
  if (facts.matching.transfer(pair.send).partner != pair.receive.number)
    return std::nullopt;
  const Passed send{channel.source, made_at(facts, pair.send)};
  const Passed receive{channel.destination, made_at(facts, pair.receive)};
  std::optional<Disagreement> found =
      facts.matching.calls().compare(send, receive);
  if (!found || !found->blocks)
    return std::nullopt;
  pair.disagreement = *std::move(found);
  const std::optional<CallId> sends = usual_call(facts, channel.sends, sent);
  const std::optional<CallId> receives =
      usual_call(facts, channel.receives, received);
  const bool alike =
      sends && receives &&
      !facts.matching.calls().compare({channel.source, *sends},
                                      {channel.destination, *receives});
  if (!alike)
    return !channel.exact || facts.motion.early_count > 0
               ? std::nullopt
               : std::optional(std::move(pair));
  const Calls& calls = facts.matching.calls();
  const bool usual_send = calls.meaning(send.call) == calls.meaning(*sends);
  const bool usual_receive =
      calls.meaning(receive.call) == calls.meaning(*receives);
  if (usual_send != usual_receive) {
    pair.disagreement.decided = true;
    pair.disagreement.suspects = {usual_send ? channel.destination
                                             : channel.source};
  }
  return pair;
}

}  // namespace

std::optional<Verdict> blame_unequal_transfer(const Case& facts) {
  std::optional<UnequalPair> first;
  const auto created = [&](const UnequalPair& pair) {
    return dump_at(facts, pair.send)
        .entries.created(facts.matching.transfer(pair.send).entry);
  };
  GroupId group;
  for (const Channel& channel : facts.matching.channels())
    if (std::optional<UnequalPair> found = unequal_in(facts, channel);
        found && (!first || created(*found) < created(*first))) {
      first = std::move(found);
      group = channel.group;
    }
  if (!first)
    return std::nullopt;
  const Disagreement& found = first->disagreement;
  Verdict verdict;
  verdict.kind = found.difference == Difference::kDtypes
                     ? VerdictKind::kDtypeMismatch
                     : VerdictKind::kSizeMismatch;
  verdict.culprits = found.suspects;
  verdict.confidence =
      found.decided ? Confidence::kLikely : Confidence::kPossible;
  verdict.group = group;
  verdict.operation = "send";
  const Rank source = dump_at(facts, first->send).rank;
  const Rank destination = dump_at(facts, first->receive).rank;
  verdict.summary = fmt::format(
      "rank {} and rank {} differ in a transfer in {}: {}", source.value,
      destination.value, facts.group_text(group), found.text);
  if (found.decided)
    verdict.summary +=
        fmt::format(", unlike before by rank {}", found.suspects[0].value);
  const auto role = [&](Rank rank) {
    return std::ranges::binary_search(found.suspects, rank)
               ? EvidenceRole::kDiffers
               : EvidenceRole::kMajority;
  };
  for (const TransferPlace place : {first->send, first->receive})
    verdict.evidence.push_back({dump_at(facts, place).rank,
                                facts.matching.transfer(place).entry,
                                role(dump_at(facts, place).rank)});
  return verdict;
}

}  // namespace postflight
