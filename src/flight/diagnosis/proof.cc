#include "flight/diagnosis/proof.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "flight/diagnosis/replay.h"

namespace postflight {
namespace {

std::optional<ChangeKind> change_for(VerdictKind kind) {
  using enum VerdictKind;
  switch (kind) {
    case kNeverJoined:
    case kNoDump:
      return ChangeKind::kJoins;
    case kDeviceStalled:
      return ChangeKind::kDeviceFinishes;
    case kTypeMismatch:
    case kSizeMismatch:
    case kDtypeMismatch:
    case kOrderMismatch:
      return ChangeKind::kCallsAsOthers;
    case kPointToPoint:
      return ChangeKind::kPartnerAppears;
    default:
      return std::nullopt;
  }
}

class Prover {
 public:
  Prover(const Case& facts, const Verdict& verdict, ChangeKind kind)
      : facts_(facts),
        verdict_(verdict),
        kind_(kind),
        replay_(facts, verdict, kind) {}

  std::vector<Proof> run() {
    std::vector<char> changed(facts_.graph.world.size(), 0);
    for (const Rank rank : verdict_.culprits)
      changed[facts_.graph.place(rank)] = 1;
    const std::vector<char> nobody(changed.size(), 0);
    unchanged_ = replay_.run(nobody);
    explains_ = !verdict_.group || !verdict_.sequence ||
                !replay_.ends_anyway(*verdict_.group, *verdict_.sequence);
    const std::vector<char> after = replay_.run(changed);
    std::vector<Proof> proofs;
    for (std::size_t i = 0; i < std::min(verdict_.culprits.size(), kMostProofs);
         ++i) {
      const Rank culprit = verdict_.culprits[i];
      const std::uint32_t place = facts_.graph.place(culprit);
      std::vector<char> alone = nobody;
      alone[place] = 1;
      const std::vector<char> after_it = replay_.run(alone);
      Proof proof = proof_of(culprit, place, unchanged_, after_it);
      if (!proof.supported && verdict_.culprits.size() > 1) {
        changed[place] = 0;
        proof = proof_of(culprit, place, replay_.run(changed), after);
        proof.alone = false;
        changed[place] = 1;
      }
      proofs.push_back(std::move(proof));
    }
    return proofs;
  }

 private:
  static constexpr std::size_t kMostProofs = 16;

  Proof proof_of(Rank culprit, std::uint32_t place,
                 const std::vector<char>& before,
                 const std::vector<char>& after) const {
    Proof proof;
    proof.culprit = culprit;
    std::vector<char> released(after.size(), 0);
    bool itself = false;
    for (std::uint32_t rank = 0; rank < after.size(); ++rank) {
      if (!replay_.waits(rank))
        continue;
      released[rank] = before[rank] != 0 && after[rank] == 0 ? 1 : 0;
      if (unchanged_[rank] == 0)
        proof.unexplained.push_back(facts_.graph.world[rank]);
      if (after[rank] != 0)
        proof.waiting.push_back(facts_.graph.world[rank]);
      else if (rank == place)
        itself = released[rank] != 0;
      else if (released[rank] != 0)
        proof.released.push_back(facts_.graph.world[rank]);
    }
    proof.supported = explains_ && proof.waiting.empty() &&
                      (itself || !proof.released.empty());
    tell_change(place, released, proof);
    return proof;
  }

  void tell_change(std::uint32_t place, const std::vector<char>& released,
                   Proof& proof) const {
    std::optional<Rank> teller;
    for (const Evidence& evidence : verdict_.evidence)
      if (evidence.role == EvidenceRole::kWaiting && !teller)
        teller = evidence.rank;
    const PendingOperation* missed = replay_.missed_by(place, teller);
    const PendingOperation* const own = replay_.oldest_of(place);
    switch (kind_) {
      case ChangeKind::kJoins:
      case ChangeKind::kPartnerAppears:
        proof.change = missed == nullptr ? "gone on" : missed_text(*missed);
        break;
      case ChangeKind::kDeviceFinishes:
        missed = own;
        proof.change = own == nullptr ? "completed what it was given"
                                      : "completed " + operation_text(*own);
        break;
      case ChangeKind::kCallsAsOthers:
        if (verdict_.kind == VerdictKind::kOrderMismatch && missed != nullptr &&
            !missed->transfer) {
          proof.change = "joined " + operation_text(*missed);
          if (own != nullptr && own != missed)
            proof.change += " before " + operation_text(*own);
        } else if (verdict_.sequence && verdict_.group) {
          proof.change = fmt::format("called {} #{} of {} as the others did",
                                     verdict_.operation, *verdict_.sequence,
                                     facts_.group_text(*verdict_.group));
        } else {
          proof.change = "called what the others called";
        }
        break;
    }
    if (missed != nullptr && !missed->transfer)
      proof.next =
          replay_.next_after(missed->group, missed->sequence, released);
    if (kind_ == ChangeKind::kCallsAsOthers && verdict_.group &&
        verdict_.sequence)
      proof.next =
          replay_.next_after(*verdict_.group, *verdict_.sequence, released);
  }

  Operation parsed(const PendingOperation& operation) const {
    const RankDump* const dump =
        facts_.job.find(facts_.graph.world[replay_.caller(operation)]);
    return facts_.job.operation(
        facts_.job.call(dump->entries[operation.entry]));
  }

  std::string operation_text(const PendingOperation& operation) const {
    const std::string group = facts_.group_text(operation.group);
    if (operation.transfer)
      return fmt::format("its {} in {}", parsed(operation).name, group);
    return fmt::format("{} #{} of {}", parsed(operation).name,
                       operation.sequence, group);
  }

  std::string missed_text(const PendingOperation& operation) const {
    if (!operation.transfer)
      return "joined " + operation_text(operation);
    return fmt::format("{} rank {} {} in {}",
                       operation.send ? "received what" : "sent what",
                       facts_.graph.world[replay_.caller(operation)].value,
                       operation.send ? "sends" : "waits for",
                       facts_.group_text(operation.group));
  }

  const Case& facts_;
  const Verdict& verdict_;
  const ChangeKind kind_;
  const Replay replay_;
  std::vector<char> unchanged_;  // who waits without any change
  // Without any change the operation of the verdict does not end.
  bool explains_ = true;
};

}  // namespace

std::vector<Proof> prove(const Case& facts, const Verdict& verdict) {
  const std::optional<ChangeKind> kind = change_for(verdict.kind);
  if (!kind || verdict.culprits.empty())
    return {};
  return Prover(facts, verdict, *kind).run();
}

bool is_proven(const Verdict& verdict) {
  return std::ranges::all_of(verdict.why, &Proof::supported);
}

}  // namespace postflight
