#pragma once

#include <optional>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// Each rule looks at the facts for one cause and returns nothing where it does
// not apply. Where the dumps leave doubt, the confidence is lower.

// Argument mismatch, wrong group: arguments differ, an operation was skipped or
// is one too many, or it was called on the wrong group.
std::optional<Verdict> blame_divergence(const Case& facts);
// Argument mismatch of a send and its receive.
std::optional<Verdict> blame_unequal_transfer(const Case& facts);
// In progress: the job moved between its dumps, and nobody can be accused.
std::optional<Verdict> call_in_progress(const Case& facts);
// Never joined, point-to-point: the rank did not come to an operation that
// others wait in.
std::optional<Verdict> blame_idle(const Case& facts);
// Stalled device: it has certainly not ended what its peers have.
std::optional<Verdict> blame_lagging_device(const Case& facts);
// Stalled device: it lags behind its peers in the same operation.
std::optional<Verdict> blame_device(const Case& facts);
// Cycle: ranks wait for each other, because they use groups in different
// orders or a transfer is unmatched.
std::optional<Verdict> blame_cycle(const Case& facts);
// No dump: others wait for a rank that left none.
std::optional<Verdict> blame_unknown(const Case& facts);
// All joined, none done.
std::optional<Verdict> call_stuck(const Case& facts);
Verdict call_inconclusive(const Case& facts);

// Straggler: in a job that moves or has ended, a rank that is always late.
std::optional<Verdict> blame_straggler(const Case& facts);
// Inconclusive if most dumps are missing.
Verdict call_healthy(const Case& facts);

// Adds findings besides the verdict: missing dumps, other mismatches,
// time-outs, silent ranks, differing versions, rings that are too short, and
// the findings of the job's files.
void add_findings(const Case& facts, Verdict& verdict);

}  // namespace postflight
