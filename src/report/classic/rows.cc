#include "report/classic/rows.h"

#include <fmt/format.h>

namespace postflight {

ClassicTracebacks::ClassicTracebacks(const Job& job,
                                     const ClassicAnalysis& analysis) {
  StackId last;
  for (const ClassicCall& call : analysis.calls) {
    const StackId stack = entry_at(job, call.where).stack;
    if (stack == last || stack == StackId{})
      continue;
    last = stack;
    if (numbers_.try_emplace(stack, stacks_.size() + 1).second)
      stacks_.push_back(stack);
  }
}

std::uint64_t ClassicTracebacks::number(StackId stack) const {
  const auto found = numbers_.find(stack);
  return found == numbers_.end() ? 0 : found->second;
}

std::string traceback_text(const Job& job, StackId stack) {
  std::string text;
  for (const FrameId id : job.tables.stack(stack)) {
    const Frame& frame = job.tables.frame(id);
    if (!text.empty())
      text += "\n";
    text += fmt::format("{} at {}:{}", job.text(frame.function),
                        job.text(frame.file), frame.line);
  }
  return text;
}

ClassicVerdictFields verdict_fields(const ClassicAnalysis& analysis,
                                    const ClassicCollective& collective) {
  ClassicVerdictFields fields;
  const ClassicProblem* const problem = analysis.problem(collective);
  if (problem == nullptr)
    return fields;
  if (problem->kind == ClassicProblemKind::kNumel) {
    fields.input_numel = problem->input_numel;
    fields.output_numel = problem->output_numel;
  }
  if (problem->kind == ClassicProblemKind::kMissingRanks)
    fields.missing_ranks = &problem->missing;
  if (!problem->errors.empty()) {
    fields.pass_check = false;
    fields.errors = &problem->errors;
  }
  return fields;
}

}  // namespace postflight
