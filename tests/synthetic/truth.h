#pragma once

#include <string>
#include <vector>

namespace postflight::synthetic {

struct Answer {
  std::string kind;
  std::vector<int> culprits;  // in order

  bool operator==(const Answer&) const = default;
};

// What is wrong with a job, as the corpus's truth.json says it.
struct Truth {
  std::string kind = "healthy";
  std::vector<std::string> accept;  // as right, with the same culprits
  std::vector<int> culprits;
  std::vector<Answer> also;           // right too
  std::vector<std::string> findings;  // kinds of findings it should come with
  std::string note;
  std::vector<int> no_dump;
  std::vector<int> empty_dumps;
  std::vector<int> cut_dumps;
  // Ranks whose dumps are incomplete. One that others wait for cannot be
  // distinguished from one that died, and if all joined and none is at fault,
  // they are suspects.
  std::vector<int> doubtful;

  bool allows(const Answer& answer) const;
};

std::string truth_json(const Truth& truth, int world,
                       const std::string& backend, const std::string& fault);

}  // namespace postflight::synthetic
