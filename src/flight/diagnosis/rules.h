#pragma once

#include <optional>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// Each rule looks at the facts for one cause, and says nothing where it does
// not apply. What a rule can't know for sure lowers the confidence.

// R4, R5: arguments differ, an operation was left out or one too many, or it
// went to the wrong group.
std::optional<Verdict> blame_divergence(const Case& facts);
// R1, R7: never joined what the others wait in.
std::optional<Verdict> blame_idle(const Case& facts);
// R2: a device that lags behind its peers in the same operation.
std::optional<Verdict> blame_device(const Case& facts);
// R6: a circle of waiting, by groups used in different orders.
std::optional<Verdict> blame_cycle(const Case& facts);
// R8: waited for, and left no dump.
std::optional<Verdict> blame_unknown(const Case& facts);
// R3: all joined, none done.
std::optional<Verdict> call_stuck(const Case& facts);
Verdict call_inconclusive(const Case& facts);

// With nothing under way. R10.
std::optional<Verdict> blame_straggler(const Case& facts);
// Inconclusive if most dumps are missing.
Verdict call_healthy(const Case& facts);

}  // namespace postflight
