#include "report/classic/report.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "flight/classic/guid.h"
#include "flight/classic/text.h"

namespace postflight {
namespace {

std::string ranks_text(const std::vector<Rank>& ranks) {
  return rank_set_python(ranks);
}

class Report {
 public:
  Report(const Job& job, const ClassicAnalysis& analysis,
         const ClassicReportOptions& options, Output& out)
      : job_(job), analysis_(analysis), options_(options), out_(out) {}

  void write() {
    for (const ClassicCollective& collective : analysis_.collectives) {
      const ClassicProblem* const problem = analysis_.problem(collective);
      if (problem != nullptr && problem->reported)
        write_problem(collective, *problem);
      else if (problem != nullptr && options_.verbose)
        write_waiting(collective, *problem);
      if (!collective.matched && options_.verbose)
        out_ += collective.batch
                    ? "Non-matching collective inside coalesced group\n"
                    : "appending a non-matching collective\n";
      if (collective.gave_up)
        write_gave_up(collective);
    }
    if (!options_.verbose)
      return;
    out_ += "built collectives, nccl_calls\n";
    if (analysis_.unfinished)
      write_unfinished(*analysis_.unfinished);
  }

 private:
  void line(std::string_view text) {
    out_ += escape_for_terminal(text);
    out_ += "\n";
  }

  void write_problem(const ClassicCollective& collective,
                     const ClassicProblem& problem) {
    if (problem.kind == ClassicProblemKind::kMissingDumps &&
        are_cut(job_, problem.without_dump)) {
      // Once: it holds for all that follows.
      if (cut_.insert({collective.group.value, problem.without_dump}).second) {
        const Entry entry = entry_at(job_, collective.shown);
        line(fmt::format(
            "We cannot decide what's wrong with {} from sequence number {} on "
            "because the dumps of ranks ({}) are cut there",
            classic_group_text(job_, job_.call(entry)), entry.sequence,
            ranks_text(problem.without_dump)));
      }
      return;
    }
    if (problem.kind == ClassicProblemKind::kMissingDumps) {
      line(fmt::format(
          "We cannot decide what's wrong with this collective entry because "
          "we missed FR dumps from ranks ({}) so we don't have enough "
          "information. If you want to debug further use -j to dump all raw "
          "trace",
          ranks_text(problem.without_dump)));
      return;
    }
    if (collective.batch)
      for (const Rank rank : problem.missing)
        line(fmt::format("Rank {} has an empty op list.", rank.value));
    const Entry entry = entry_at(job_, collective.shown);
    // Of a message too this is the number of the last collective before it.
    const std::int64_t sequence = entry.sequence;
    switch (problem.kind) {
      case ClassicProblemKind::kMissingRanks:
        line(fmt::format(
            "Not all ranks joining collective, sequence number: {}", sequence));
        break;
      case ClassicProblemKind::kNumel:
        line(fmt::format(
            "Input/output mismatch in the collective sequence number: {}",
            sequence));
        break;
      default:
        line(
            fmt::format("Collective sequence number: {} has errors", sequence));
    }
    write_block(collective, problem, entry);
  }

  void write_block(const ClassicCollective& collective,
                   const ClassicProblem& problem, const Entry& entry) {
    const Call& call = job_.call(entry);
    line(fmt::format("internal record id: {}", entry.record_id));
    line(fmt::format("group info: {}", classic_group_text(job_, call)));
    line(fmt::format("collective: {}", job_.text(call.name)));
    if (problem.kind == ClassicProblemKind::kMissingRanks) {
      line(fmt::format("missing ranks: {}", ranks_text(problem.accused)));
      std::vector<Rank> held_up = problem.missing;
      std::erase_if(held_up, [&](Rank rank) {
        return std::ranges::binary_search(problem.accused, rank);
      });
      if (!held_up.empty())
        line(fmt::format("waiting elsewhere: {}", ranks_text(held_up)));
    }
    if (problem.kind == ClassicProblemKind::kNumel) {
      line(fmt::format("total input numel: {}", problem.input_numel));
      line(fmt::format("total output numel: {}", problem.output_numel));
    }
    line(fmt::format("input sizes: {}", sizes_text(job_.tables, call.inputs)));
    line(
        fmt::format("output sizes: {}", sizes_text(job_.tables, call.outputs)));
    const std::vector<Rank> expected = expected_ranks(job_, collective);
    line(fmt::format("world size: {}", expected.size()));
    line(fmt::format("expected ranks: {}", ranks_text(expected)));
    line(fmt::format("collective state: {}", state_name(entry.state)));
    if (problem.kind == ClassicProblemKind::kErrors)
      write_errors(problem);
    out_ += "collective stack trace: \n ";
    write_stack(entry.stack);
  }

  void write_errors(const ClassicProblem& problem) {
    std::string text = "error msg: ";
    for (const ClassicError& error : problem.errors) {
      if (&error != problem.errors.data())
        text += ", ";
      text += fmt::format("Culprit rank {}; Error type: {}",
                          job_.ranks[error.where.rank].rank.value,
                          mismatch_name(error.mismatch));
      if (!error.text.empty())
        text += ", " + error.text;
    }
    line(text);
  }

  void write_stack(StackId stack) {
    bool first = true;
    for (const FrameId id : job_.tables.stack(stack)) {
      const Frame& frame = job_.tables.frame(id);
      out_ += first ? "" : "\n";
      first = false;
      out_ += escape_for_terminal(
          fmt::format("{} at {}:{}", job_.text(frame.function),
                      job_.text(frame.file), frame.line));
    }
    out_ += "\n";
  }

  // Those who are missing wait for somebody else, so it is no finding.
  void write_waiting(const ClassicCollective& collective,
                     const ClassicProblem& problem) {
    const Entry entry = entry_at(job_, collective.shown);
    const Call& call = job_.call(entry);
    line(fmt::format(
        "ranks {} are held up before {} in {}, sequence number: {}",
        ranks_text(problem.missing), job_.text(call.name),
        classic_group_text(job_, call),
        collective.point_to_point ? entry.p2p_sequence : entry.sequence));
  }

  void write_gave_up(const ClassicCollective& collective) {
    const Group& group = job_.group(collective.group);
    line(fmt::format(
        "Too many mismatches for process_group {}: {} aborting",
        classic_guid(job_.text(group.name), group.members),
        job_.text(
            job_.call(entry_at(job_, collective.shown)).group_description)));
  }

  void write_unfinished(const ClassicUnfinished& unfinished) {
    std::vector<std::string> states;
    for (const auto& [state, ranks] : unfinished.ranks)
      states.push_back(
          fmt::format("{} on ranks {}", state_name(state), ranks_text(ranks)));
    const Entry entry = entry_at(job_, unfinished.where);
    const Call& call = job_.call(entry);
    line(fmt::format(
        "First collective not completed: {} in {}, sequence number: {}, "
        "state: {}",
        job_.text(call.name), classic_group_text(job_, call),
        job_.operation(call).point_to_point() ? entry.p2p_sequence
                                              : entry.sequence,
        fmt::join(states, ", ")));
  }

  const Job& job_;
  const ClassicAnalysis& analysis_;
  const ClassicReportOptions& options_;
  Output& out_;
  std::set<std::pair<std::uint32_t, std::vector<Rank>>> cut_;
};

}  // namespace

std::string classic_group_text(const Job& job, const Call& call) {
  const std::string_view name = job.text(call.group_name);
  const std::string_view description = job.text(call.group_description);
  return description == "undefined" ? std::string(name)
                                    : fmt::format("{}:{}", name, description);
}

void write_classic_report(const Job& job, const ClassicAnalysis& analysis,
                          const ClassicReportOptions& options, Output& out) {
  Report(job, analysis, options, out).write();
}

void write_classic_warnings(const Job& job, Output& out) {
  const auto line = [&](const std::string& text) {
    out += escape_for_terminal(text);
    out += "\n";
  };
  for (const SkippedFile& file : job.skipped)
    line(fmt::format("{}: skipped: {}", file.file, file.reason));
  for (const Finding& finding : job.findings) {
    if (finding.severity == Severity::kNote)
      continue;
    line(finding.where.empty()
             ? finding.message
             : fmt::format("{}: {}", finding.where, finding.message));
  }
  if (job.ranks.empty())
    return;
  const TextId version = job.ranks.front().version;
  for (const RankDump& dump : job.ranks)
    if (dump.version != version)
      line(fmt::format(
          "Rank {} has different version {} from the given version {}",
          dump.rank.value, job.text(dump.version), job.text(version)));
}

}  // namespace postflight
