#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "flight/model/rank_set.h"
#include "report/flight/entry_text.h"
#include "report/flight/row.h"
#include "report/flight/trace_text.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

void write_thread_now(const ThreadStack& thread, Output& out) {
  std::string title = "thread";
  if (thread.tid != 0)
    title += fmt::format(" {}", thread.tid);
  if (!thread.name.empty())
    title += fmt::format(" ({})", escape_for_terminal(thread.name));
  out += fmt::format("    {}{}\n", title,
                     thread.motion == Motion::kStuck  ? ", stuck"
                     : thread.motion == Motion::kBusy ? ", busy"
                                                      : "");
  for (const StackFrame& frame : thread.frames)
    out += fmt::format("      {}\n", escape_for_terminal(frame_text(frame)));
}

// The state, operation, place, group and tensors of some entries, a line each,
// in columns as wide as their content.
void write_entry_rows(const Job& job, const RankDump& dump,
                      std::span<const std::size_t> which,
                      const TraceReportOptions& options,
                      const Terminal& terminal, Output& out) {
  constexpr std::size_t kColumns = 4;  // that are padded
  std::vector<std::array<std::string, kColumns + 1>> rows;
  std::array<std::size_t, kColumns> widths = {};
  for (const std::size_t i : which) {
    const Entry entry = dump.entries[i];
    const Call& call = job.call(entry);
    rows.push_back({std::string(state_name(entry.state)),
                    operation_label(job, entry), place_label(job, entry),
                    group_label(job, job.group(call.group)),
                    tensors_label(job, call)});
    for (std::size_t column = 0; column < kColumns; ++column)
      widths[column] =
          std::max(widths[column], display_width(rows.back()[column]));
  }
  const std::size_t width = row_width(terminal, options.all);
  for (const auto& row : rows) {
    std::string line = " ";
    std::size_t needed = 0;  // up to the line of code
    for (std::size_t column = 0; column <= kColumns; ++column) {
      line += " " + row[column];
      if (column < kColumns)
        line +=
            std::string(widths[column] - display_width(row[column]) + 1, ' ');
      if (column == 2)
        needed = display_width(line);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out +=
        width == kUnlimitedWidth
            ? line
            : cut_to_width(line, std::max(width, needed), terminal.ellipsis());
    out += "\n";
  }
}

// Why a rank has no dump here.
std::string absence_text(const Job& job, Rank rank) {
  const SkippedFile* const file = job.skipped_of(rank);
  return file == nullptr ? "left no dump"
         : file->empty   ? "its dump is empty"
                         : "its dump can't be read";
}

// " in all_reduce #6 of default_pg", if all these ranks wait in the same.
std::string waiting_in(const Job& job, const Verdict& verdict,
                       std::span<const Rank> ranks) {
  std::string common;
  for (const RankStatus& one : verdict.ranks) {
    if (!std::ranges::binary_search(ranks, one.rank))
      continue;
    const RankDump* const dump = job.find(one.rank);
    if (dump == nullptr || !one.entry)
      return "";
    const Entry entry = dump->entries[*one.entry];
    std::string text =
        fmt::format(" in {} of {}", operation_label(job, entry),
                    group_label(job, job.group(job.call(entry).group)));
    if (!common.empty() && common != text)
      return "";
    common = std::move(text);
  }
  return common;
}

// What its log says of a rank at fault.
bool write_cited(const Verdict& verdict, Rank rank, const Terminal& terminal,
                 Output& out) {
  bool any = false;
  for (const Evidence& evidence : verdict.evidence) {
    if (evidence.rank != rank || evidence.witness != Witness::kLog ||
        evidence.role != EvidenceRole::kReported)
      continue;
    out += fmt::format("  its log: {}\n",
                       wrapped(escape_for_terminal(evidence.message + " (" +
                                                   evidence.where + ")"),
                               11, terminal.width, 11));
    any = true;
  }
  return any;
}

}  // namespace

void write_rank_report(const Job& job, const Verdict& verdict, Rank rank,
                       const TraceReportOptions& options,
                       const Terminal& terminal, Output& out) {
  constexpr std::size_t kLast = 12;
  const auto status =
      std::ranges::lower_bound(verdict.ranks, rank, {}, &RankStatus::rank);
  const RankDump* const dump = job.find(rank);
  out += fmt::format(
      "{}{}: {}\n",
      terminal.styled(Style::kBold, fmt::format("rank {}", rank.value)),
      host_label(job, rank), rank_state_name(status->state));
  if (!status->waiting_for.empty())
    out += fmt::format("  waits for {}\n", ranks_label(status->waiting_for));
  std::vector<Rank> waiting;
  for (const RankStatus& other : verdict.ranks)
    if (std::ranges::binary_search(other.waiting_for, rank))
      waiting.push_back(other.rank);
  if (!waiting.empty())
    out += fmt::format("  {} wait{} for it{}\n", ranks_label(waiting),
                       waiting.size() == 1 ? "s" : "",
                       waiting_in(job, verdict, waiting));
  const auto show_stacks = [&] {
    for (const ProcessStacks* const process :
         processes_of_rank(options.stacks, rank.value)) {
      out += "\n  now:\n";
      for (const ThreadStack& thread : process->threads)
        write_thread_now(thread, out);
    }
  };
  const bool cited = write_cited(verdict, rank, terminal, out);
  if (dump == nullptr) {
    const SkippedFile* const file = job.skipped_of(rank);
    if (file != nullptr)
      out += fmt::format(
          "  {}\n",
          wrapped(escape_for_terminal(fmt::format(
                      "{}: {} ({})",
                      file->empty ? "its dump" : absence_text(job, rank),
                      file->reason, file->file)),
                  2, terminal.width, 4));
    else if (options.dumps)
      out += "  left no dump\n";
    else if (!cited)
      out += "  its logs do not tell how far it came\n";
    show_stacks();
    return;
  }
  if (dump->reported)
    out += fmt::format(
        "  {} operation{}, as reported in {}\n", dump->entries.size(),
        dump->entries.size() == 1 ? "" : "s", escape_for_terminal(dump->file));
  else
    out +=
        fmt::format("  {} entries of version {} in {}\n", dump->entries.size(),
                    escape_for_terminal(job.text(dump->version)),
                    escape_for_terminal(dump->file));
  const std::size_t first = options.all || dump->entries.size() <= kLast
                                ? 0
                                : dump->entries.size() - kLast;
  std::vector<std::size_t> shown;
  // A host can run far ahead of the operation that it is stuck in.
  const bool is_stuck = status->state == RankState::kWaiting ||
                        status->state == RankState::kMismatched ||
                        status->state == RankState::kStalled;
  if (is_stuck && status->entry && *status->entry < first) {
    out += fmt::format("\n  stuck in, {} operations before its last:\n",
                       dump->entries.size() - 1 - *status->entry);
    write_entry_rows(job, *dump, std::vector<std::size_t>{*status->entry},
                     options, terminal, out);
  }
  for (std::size_t i = first; i < dump->entries.size(); ++i)
    shown.push_back(i);
  out += first > 0 ? fmt::format("\n  the last {}:\n", kLast) : "\n";
  write_entry_rows(job, *dump, shown, options, terminal, out);
  show_stacks();
  if (dump->entries.empty())
    return;
  const Entry last = dump->entries[status->entry.value_or(
      static_cast<std::uint32_t>(dump->entries.size() - 1))];
  if (last.stack == StackId{})
    return;
  out += fmt::format("\n  stack of {}, innermost frame first:\n",
                     operation_label(job, last));
  for (const FrameId id : job.tables.stack(last.stack)) {
    const Frame& frame = job.tables.frame(id);
    out += fmt::format("    {} at {}:{}\n",
                       escape_for_terminal(job.text(frame.function)),
                       escape_for_terminal(job.text(frame.file)), frame.line);
  }
}

void write_group_report(const Job& job, const Verdict& verdict, GroupId id,
                        const TraceReportOptions& options,
                        const Terminal& terminal, Output& out) {
  const Group& group = job.group(id);
  out += fmt::format("{}: {}{}\n",
                     terminal.styled(Style::kBold, group_label(job, group)),
                     ranks_label(group.members),
                     group.configured ? "" : ", inferred from its entries");
  // Members by their last operation on this group.
  std::map<std::string, std::vector<Rank>> alike;
  for (const Rank member : group.members) {
    const RankDump* const dump = job.find(member);
    std::string what = absence_text(job, member);
    if (dump != nullptr) {
      what = "no entries of this group";
      for (std::size_t i = dump->entries.size(); i-- > 0;) {
        const Entry entry = dump->entries[i];
        if (job.call(entry).group != id)
          continue;
        what = fmt::format("{:<10} {}  {}  {}", state_name(entry.state),
                           operation_label(job, entry), place_label(job, entry),
                           tensors_label(job, job.call(entry)));
        break;
      }
    }
    alike[what].push_back(member);
  }
  out += "\n  last operation of each member:\n";
  std::size_t widest = 0;
  for (const auto& [what, ranks] : alike)
    widest = std::max(widest, ranks_label(ranks).size());
  widest = std::min(widest, row_width(terminal, options.all) / 2);
  for (const auto& [what, ranks] : alike) {
    const std::string row =
        fmt::format("  {:<{}}  {}", ranks_label(ranks), widest, what);
    const std::size_t width = row_width(terminal, options.all);
    out += width == kUnlimitedWidth
               ? row
               : cut_to_width(row, width, terminal.ellipsis());
    out += "\n";
  }
  if (verdict.group == id)
    out += fmt::format("\n  {}\n", wrapped(escape_for_terminal(verdict.summary),
                                           2, terminal.width, 2));
}

}  // namespace postflight
