#include "report/flight/proof_text.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "flight/model/rank_set.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

// "3 of 4 ranks would go on to #46"
std::string effect_text(const Verdict& verdict, std::size_t released,
                        const Proof& proof) {
  std::string text = released == 0
                         ? "it would go on"
                         : fmt::format("{} of {} ranks would go on", released,
                                       verdict.ranks.size());
  if (proof.next)
    text += fmt::format(" to #{}", *proof.next);
  return text;
}

std::string proof_text(const Verdict& verdict, const Proof& proof) {
  std::string change =
      fmt::format("if rank {} had {}", proof.culprit.value, proof.change);
  if (!proof.alone) {
    std::vector<Rank> others = verdict.culprits;
    std::erase(others, proof.culprit);
    change += fmt::format(" and {} had done {} part", ranks_label(others),
                          others.size() == 1 ? "its" : "their");
  }
  if (proof.supported)
    return fmt::format("{}, {}", change,
                       effect_text(verdict, proof.released.size(), proof));
  if (!proof.waiting.empty())
    return fmt::format("{}, {} would still wait: the records do not prove it",
                       change, ranks_label(proof.waiting));
  return fmt::format(
      "nobody who waits needs another rank {}: the records do not prove it",
      proof.culprit.value);
}

// Whether one sentence serves for all.
bool are_alike(const std::vector<Proof>& proofs) {
  return proofs.size() > 1 && std::ranges::all_of(proofs, [&](const Proof& p) {
           return p.supported && p.alone == proofs[0].alone &&
                  p.change == proofs[0].change && p.next == proofs[0].next;
         });
}

std::string joint_text(const Verdict& verdict) {
  const std::vector<Proof>& proofs = verdict.why;
  std::set<Rank> released;
  std::vector<Rank> culprits;
  for (const Proof& proof : proofs) {
    released.insert(proof.released.begin(), proof.released.end());
    culprits.push_back(proof.culprit);
  }
  for (const Rank culprit : verdict.culprits)
    if (!proofs[0].alone)
      released.erase(culprit);
  return fmt::format("if {}{} had {}, {}", proofs[0].alone ? "one of " : "",
                     ranks_label(culprits), proofs[0].change,
                     effect_text(verdict, released.size(), proofs[0]));
}

}  // namespace

void write_proofs(const Verdict& verdict, const Terminal& terminal,
                  Output& out) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kColumn = 13;
  const auto tell = [&](std::string_view label, const std::string& text) {
    out += fmt::format(
        "  {:<10} {}\n", label,
        wrapped(escape_for_terminal(text), kColumn, terminal.width, kColumn));
  };
  out += "\n";
  if (verdict.why.empty())
    return tell(
        "why",
        "it names no rank that others wait for, so there is nothing to replay");
  if (are_alike(verdict.why)) {
    tell("why", joint_text(verdict));
    if (!verdict.why[0].alone)
      tell("", "if one of them had not, somebody would still wait");
    return;
  }
  for (std::size_t i = 0; i < verdict.why.size() && i < kShown; ++i)
    tell(i == 0 ? "why" : "", proof_text(verdict, verdict.why[i]));
  if (verdict.why.size() > kShown)
    tell("", fmt::format("and {} more in --json", verdict.why.size() - kShown));
}

}  // namespace postflight
