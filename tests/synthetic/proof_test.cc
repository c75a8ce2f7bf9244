// The replay supports right verdicts, and not those that accuse somebody else.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flight/diagnosis/diagnosis.h"
#include "flight/diagnosis/proof.h"
#include "synthetic/family.h"
#include "synthetic/loaded_job.h"

namespace postflight::synthetic {
namespace {

struct Tally {
  int jobs = 0;
  int supported = 0;
};

// With another rank in place of the first that is accused.
Verdict with_another(const Case& facts, const Verdict& verdict) {
  Verdict other = verdict;
  const std::uint32_t place = facts.graph.place(verdict.culprits[0]);
  for (std::size_t step = 1; step < facts.graph.world.size(); ++step) {
    const Rank rank =
        facts.graph.world[(place + step) % facts.graph.world.size()];
    if (std::ranges::binary_search(verdict.culprits, rank))
      continue;
    other.culprits[0] = rank;
    break;
  }
  std::ranges::sort(other.culprits);
  other.why = prove(facts, other);
  return other;
}

TEST(Proof, SupportsTheGuiltyAndNotTheInnocent) {
  constexpr std::size_t kJobs = 48;  // three with each fault
  std::map<std::string, Tally> right;
  std::map<std::string, Tally> substituted;
  for (std::size_t index = 0; index < kJobs; ++index) {
    const FamilyMember member = family_member(index);
    const LoadedJob loaded = load(member.options);
    const Matching matching(loaded.job);
    const Verdict verdict = diagnose(matching);
    Answer answer{std::string(kind_name(verdict.kind)), {}};
    for (const Rank culprit : verdict.culprits)
      answer.culprits.push_back(culprit.value);
    if (verdict.why.empty() || !loaded.made.truth().allows(answer))
      continue;
    const bool proven = is_proven(verdict);
    EXPECT_TRUE(proven || verdict.confidence != Confidence::kCertain);
    Tally& of_kind = right[answer.kind];
    ++of_kind.jobs;
    of_kind.supported += proven ? 1 : 0;
    const Case facts(matching, {});
    const Verdict other = with_another(facts, verdict);
    if (other.culprits == verdict.culprits)
      continue;
    Tally& wrong = substituted[answer.kind];
    ++wrong.jobs;
    wrong.supported += is_proven(other) ? 1 : 0;
  }
  Tally all_right;
  Tally all_substituted;
  for (const auto& [kind, tally] : right) {
    all_right.jobs += tally.jobs;
    all_right.supported += tally.supported;
    all_substituted.jobs += substituted[kind].jobs;
    all_substituted.supported += substituted[kind].supported;
  }
  // Dumps of active work only hide who has done what, and a transfer may have
  // been skipped by either side.
  EXPECT_GE(all_right.jobs, 30);
  EXPECT_GE(all_right.supported * 10, all_right.jobs * 9);
  // A rank of a cycle may be exchanged for another one, and ranks without a
  // dump for each other.
  EXPECT_LE(all_substituted.supported * 10, all_substituted.jobs);
  for (const char* const kind :
       {"never_joined", "type_mismatch", "size_mismatch", "dtype_mismatch"}) {
    EXPECT_GT(substituted[kind].jobs, 0) << kind;
    EXPECT_EQ(substituted[kind].supported, 0) << kind;
  }
}

}  // namespace
}  // namespace postflight::synthetic
