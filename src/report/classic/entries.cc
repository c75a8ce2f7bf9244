#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/escape.h"
#include "flight/classic/alignment.h"
#include "flight/classic/guid.h"
#include "flight/classic/text.h"
#include "report/classic/report.h"
#include "report/python_table.h"

namespace postflight {
namespace {

class EntryTable {
 public:
  EntryTable(const Job& job, const ClassicEntriesOptions& options)
      : job_(job), options_(options), starts_(aligned_starts(job)) {
    for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
      const RankDump& dump = job.ranks[rank];
      if (!options.all_ranks &&
          std::ranges::find(options.ranks, dump.rank.value) ==
              options.ranks.end())
        continue;
      ranks_.push_back(rank);
      headers_.push_back(fmt::format("Rank {}", dump.rank.value));
      rows_ = std::max(rows_, dump.entries.size() - starts_[rank]);
    }
    for (const Group& group : job.groups)
      guids_.push_back(classic_guid(job.text(group.name), group.members));
    number_stacks();
  }

  void write(Output& out) const {
    write_python_table(
        headers_, rows_,
        [this](std::size_t row, std::size_t column) {
          return cell(row, column);
        },
        out);
    if (!options_.stacks || stacks_.empty())
      return;
    const std::string headers[] = {"stack_id", "frame_stack"};
    write_python_table(
        headers, stacks_.size(),
        [this](std::size_t row, std::size_t column) -> TableCell {
          if (column == 0)
            return {fmt::format("{}", row), TableCell::Kind::kNumber};
          return {escape_for_terminal(frames_text(job_.tables, stacks_[row]))};
        },
        out);
  }

 private:
  void number_stacks() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const Entries& entries = job_.ranks[rank].entries;
      for (std::size_t i = starts_[rank]; i < entries.size(); ++i) {
        const StackId stack = entries[i].stack;
        if (stack != StackId{} &&
            stack_numbers_.try_emplace(stack, stacks_.size()).second)
          stacks_.push_back(stack);
      }
    }
  }

  TableCell cell(std::size_t row, std::size_t column) const {
    const std::uint32_t rank = ranks_[column];
    const Entries& entries = job_.ranks[rank].entries;
    const std::size_t index = starts_[rank] + row;
    if (index >= entries.size())
      return {"", TableCell::Kind::kNone};
    const Entry entry = entries[index];
    const Call& call = job_.call(entry);
    const auto is_chosen = [&](TextId text) {
      return std::ranges::find(options_.groups, job_.text(text)) !=
             options_.groups.end();
    };
    if (!options_.all_groups && !is_chosen(call.group_name) &&
        !is_chosen(call.group_description))
      return {"", TableCell::Kind::kNone};
    return {escape_for_terminal(options_.verbose ? long_text(entry, call)
                                                 : short_text(entry, call))};
  }

  std::string short_text(const Entry& entry, const Call& call) const {
    const Operation operation = job_.operation(call);
    const std::string peers = peers_text(operation, call);
    return fmt::format("{}({}{}input_sizes={}, state={})", operation.name,
                       peers, peers.empty() ? "" : ", ",
                       sizes(operation, call.inputs), state_name(entry.state));
  }

  std::string long_text(const Entry& entry, const Call& call) const {
    const Operation operation = job_.operation(call);
    const std::string peers = peers_text(operation, call);
    const auto stack = stack_numbers_.find(entry.stack);
    return fmt::format(
        "{}(timestamp_created={}, {}{}input_sizes={}, output_sizes={}, "
        "input_dtypes={}, output_dtypes={}, collective_seq_id | "
        "p2p_seq_id={}, pg_name={}, pg_description={}, pg_size={}, "
        "stack_id={}, state={})",
        operation.name, entry.created, peers, peers.empty() ? "" : ", ",
        sizes(operation, call.inputs), sizes(operation, call.outputs),
        dtypes_text(job_.tables, call.input_dtypes),
        dtypes_text(job_.tables, call.output_dtypes),
        operation.point_to_point() ? entry.p2p_sequence : entry.sequence,
        guids_[call.group.value], job_.text(call.group_description),
        job_.group(call.group).members.size(),
        stack == stack_numbers_.end()
            ? -1
            : static_cast<std::int64_t>(stack->second),
        state_name(entry.state));
  }

  std::string peers_text(const Operation& operation, const Call& call) const {
    if (!operation.point_to_point())
      return "";
    const std::vector<Rank>& members = job_.group(call.group).members;
    const auto global = [&](std::int32_t place) {
      return place >= 0 && static_cast<std::size_t>(place) < members.size()
                 ? fmt::format("{}",
                               members[static_cast<std::size_t>(place)].value)
                 : std::string("?");
    };
    return fmt::format("s={} d={}", global(operation.source),
                       global(operation.destination));
  }

  std::string sizes(const Operation& operation, SizesId id) const {
    return operation.kind == OperationKind::kCoalesced
               ? "None"
               : sizes_text(job_.tables, id);
  }

  const Job& job_;
  const ClassicEntriesOptions& options_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::string> headers_;
  std::size_t rows_ = 0;
  std::vector<std::string> guids_;  // by group
  std::map<StackId, std::size_t> stack_numbers_;
  std::vector<StackId> stacks_;
};

}  // namespace

void write_classic_entries(const Job& job, const ClassicEntriesOptions& options,
                           Output& out) {
  EntryTable(job, options).write(out);
}

}  // namespace postflight
