#pragma once

#include <string>
#include <vector>

#include "flight/diagnosis/divergence.h"
#include "flight/diagnosis/motion.h"
#include "flight/diagnosis/wait_graph.h"
#include "flight/matching/matching.h"
#include "flight/model/job.h"

namespace postflight {

// The facts that the rules examine.
struct Case {
  Case(const Matching& matched, const Context& context)
      : job(matched.job()),
        matching(matched),
        motion(find_motion(matched)),
        graph(make_wait_graph(matching, motion)),
        divergences(find_divergences(matching, context)) {}

  const Job& job;
  const Matching& matching;
  Motion motion;
  WaitGraph graph;
  std::vector<Divergence> divergences;

  // "dp_0", with its ranks if another group has the same description.
  std::string group_text(GroupId group) const;
  // "all_reduce #1482 of dp_0", "send to rank 1 in pp_0"
  std::string wait_text(const Wait& wait) const;
  std::string operation_text(const Wait& wait) const;
  // What the absent ranks did not do: "joined all_reduce #6 of dp_0", "sent
  // what rank 3 waits for in pp_0".
  std::string missed_text(const Wait& wait) const;
  // Whether no rank can complete its operation before all have joined.
  bool needs_all(const Wait& wait) const;
  // "rank 5", "ranks 0-3,8"
  static std::string ranks_text(const std::vector<Rank>& ranks);
};

}  // namespace postflight
