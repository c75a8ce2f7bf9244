#include "report/flight/entries_text.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "flight/model/rank_set.h"
#include "report/finding_text.h"
#include "report/flight/grid_text.h"

namespace postflight {
namespace {

std::string plural(std::uint64_t count, std::string_view one,
                   std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string ranks_phrase(std::span<const Rank> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks",
                     rank_set_text(ranks));
}

// "no dump of rank 2": of some of them there may be a file that is none.
void write_without_dump(const Job& job, std::vector<Rank> without,
                        std::string_view indent, Output& out) {
  const std::vector<Rank> unreadable = job.with_unreadable_dump();
  std::vector<Rank> damaged;
  std::erase_if(without, [&](Rank rank) {
    const bool found = std::ranges::binary_search(unreadable, rank);
    if (found)
      damaged.push_back(rank);
    return found;
  });
  if (!without.empty())
    out += fmt::format("{}no dump of {}\n", indent, ranks_phrase(without));
  if (!damaged.empty())
    out += fmt::format("{}unreadable dump{} of {}\n", indent,
                       damaged.size() == 1 ? "" : "s", ranks_phrase(damaged));
}

void write_group_title(const Job& job, const Group& group,
                       const GroupGrid& grid, const Terminal& terminal,
                       Output& out) {
  const std::string name = escape_for_terminal(job.text(group.name));
  const std::string description =
      escape_for_terminal(job.text(group.description));
  std::string title = "group " + name;
  if (!description.empty() && description != name)
    title += fmt::format(" {}", description);
  out += fmt::format("\n{}: {}{}\n", terminal.styled(Style::kBold, title),
                     ranks_phrase(group.members),
                     group.configured ? "" : ", as far as the dumps show");
  std::vector<Rank> without;
  for (const Rank rank : group.members)
    if (job.find(rank) == nullptr)
      without.push_back(rank);
  write_without_dump(job, without, "  ", out);
  std::uint32_t late = grid.all_known_from;
  // A ring may begin within a batch; the next number is whole.
  while (late > 0 && late < grid.rows.size() && grid.rows[late].position > 0)
    ++late;
  if (late > 0)
    out +=
        late < grid.rows.size()
            ? fmt::format("  ?: overwritten; from #{} on all ranks are known\n",
                          grid.rows[late].sequence)
            : "  ?: overwritten\n";
  if (grid.current_from > 0)
    out +=
        "  @1, @2, ...: before the group was created again; ?: not known who "
        "took part\n";
  if (grid.has_open_end)
    out += "  ? at the end: the dump is older than others, or truncated\n";
}

void write_stacks(const Job& job, const StackNumbers& stacks,
                  const Terminal& terminal, Output& out) {
  std::size_t number = 0;
  for (const StackId stack : stacks.order()) {
    out += fmt::format(
        "\n{}\n",
        terminal.styled(Style::kBold, fmt::format("stack s{}", ++number)));
    for (const FrameId id : job.tables.stack(stack)) {
      const Frame& frame = job.tables.frame(id);
      out += fmt::format("  {} at {}:{}\n",
                         escape_for_terminal(job.text(frame.function)),
                         escape_for_terminal(job.text(frame.file)), frame.line);
    }
  }
}

// Files that neither are nor look like dumps are only counted.
void write_job_findings(const Job& job, const Terminal& terminal, Output& out) {
  std::vector<Finding> findings = job.all_findings();
  std::vector<Finding> others;
  std::erase_if(findings, [&](const Finding& finding) {
    const bool other =
        finding.kind == "skipped_file" && finding.severity == Severity::kNote;
    if (other)
      others.push_back(finding);
    return other;
  });
  if (others.size() > 1)
    findings.push_back(
        {"skipped_file", Severity::kNote,
         fmt::format("skipped {} files that are not dumps", others.size()),
         others[0].where + ", ..."});
  else
    findings.insert(findings.end(), others.begin(), others.end());
  write_findings(findings, terminal, out);
}

}  // namespace

void write_entries(const Matching& matching, const EntryFilter& filter,
                   const EntriesGridOptions& options, const Terminal& terminal,
                   Output& out) {
  const Job& job = matching.job();
  out += fmt::format("{}, {}, {}\n", plural(job.ranks.size(), "rank", "ranks"),
                     plural(job.entry_count(), "entry", "entries"),
                     plural(job.groups.size(), "group", "groups"));
  write_without_dump(job, job.without_dump(), "", out);
  write_job_findings(job, terminal, out);

  const CollectiveTable table = tabulate(matching);
  EntriesGrid entries(matching, table, filter, options);
  StackNumbers stacks;
  bool any = false;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    if (!filter.takes(GroupId{g}))
      continue;
    const GroupGrid grid = entries.group({g});
    if (grid.rows.empty())
      continue;
    any = true;
    write_group_title(job, job.groups[g], grid, terminal, out);
    GridText(job, entries, grid, terminal, options.stacks ? &stacks : nullptr,
             out)
        .write();
  }
  if (!any)
    out += "\nno entry is as asked for\n";
  write_stacks(job, stacks, terminal, out);
}

}  // namespace postflight
