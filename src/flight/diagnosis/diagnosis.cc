// The rules are tried in this order, and the first that can name somebody wins:
//
//   1. ranks that passed other arguments than the rest: later hangs follow
//   2. ranks that wait for nothing while others wait for them
//   3. a device that did not start or finish what its peers did
//   4. ranks that wait for each other in a circle
//   5. ranks without a dump that others wait for
//   6. nobody: all have joined, and nothing moves
//
// If nothing is under way at all: ranks that are always late, or all is well.
// Whoever only waits is never accused.
#include "flight/diagnosis/diagnosis.h"

#include <algorithm>
#include <utility>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/hygiene.h"
#include "flight/diagnosis/rules.h"
#include "flight/diagnosis/standing.h"

namespace postflight {
namespace {

Verdict judge(const Case& facts) {
  if (facts.graph.waits.empty()) {
    if (std::optional<Verdict> verdict = blame_straggler(facts))
      return *std::move(verdict);
    return call_healthy(facts);
  }
  for (const auto rule : {blame_divergence, blame_idle, blame_device,
                          blame_cycle, blame_unknown, call_stuck})
    if (std::optional<Verdict> verdict = rule(facts))
      return *std::move(verdict);
  return call_inconclusive(facts);
}

}  // namespace

Verdict diagnose(const Job& job) {
  const Case facts(job);
  Verdict verdict = judge(facts);
  verdict.pending = !facts.graph.waits.empty();
  verdict.ranks = stand(facts, verdict);
  add_findings(facts, verdict);
  return verdict;
}

}  // namespace postflight
