#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flight/classic/analysis.h"

namespace postflight {

// The stacks of all calls, numbered from 1 in the order of the calls; 0 where
// none was recorded.
class ClassicTracebacks {
 public:
  ClassicTracebacks(const Job& job, const ClassicAnalysis& analysis);

  std::uint64_t number(StackId stack) const;
  // The first has number 1.
  const std::vector<StackId>& stacks() const { return stacks_; }

 private:
  std::map<StackId, std::uint64_t> numbers_;
  std::vector<StackId> stacks_;
};

// "name at file:line", a line each, not escaped.
std::string traceback_text(const Job& job, StackId stack);

// The fields of torchfrtrace's Collective that depend on what was found.
struct ClassicVerdictFields {
  bool pass_check = true;  // false only if an entry differs
  std::optional<std::int64_t> input_numel;
  std::optional<std::int64_t> output_numel;
  const std::vector<Rank>* missing_ranks = nullptr;
  const std::vector<ClassicError>* errors = nullptr;  // not empty
};

ClassicVerdictFields verdict_fields(const ClassicAnalysis& analysis,
                                    const ClassicCollective& collective);

}  // namespace postflight
