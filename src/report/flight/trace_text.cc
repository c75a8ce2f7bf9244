#include "report/flight/trace_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "flight/diagnosis/call_stack.h"
#include "flight/model/rank_set.h"
#include "report/finding_text.h"
#include "report/flight/entry_text.h"
#include "report/flight/proof_text.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::size_t kCulprits = 3;
constexpr std::size_t kFindings = 6;

constexpr std::size_t kRows = 8;

struct RankRow {
  RankState state = RankState::kDone;
  std::vector<Rank> ranks;
  // Their operation. A text is empty if they differ in it.
  bool has_entry = false;
  std::string name;       // "all_reduce"
  std::string operation;  // "all_reduce #12"
  std::string place;
  std::string tensors;
  std::string group;
  std::size_t groups = 1;
};

RankRow row_of(const Job& job, const RankStatus& one) {
  RankRow row;
  row.state = one.state;
  row.ranks = {one.rank};
  const RankDump* const dump = job.find(one.rank);
  if (dump == nullptr)
    return row;
  if (!one.entry) {
    row.operation = "no entries";
    return row;
  }
  const Entry entry = dump->entries[*one.entry];
  const Call& call = job.call(entry);
  row.has_entry = true;
  row.operation = operation_label(job, entry);
  row.name = row.operation.substr(0, row.operation.find(' '));
  row.place = place_label(job, entry);
  row.tensors = tensors_label(job, call);
  row.group = group_label(job, job.group(call.group));
  return row;
}

// Tensors come first where they differ, as the place is then the same.
std::string text_of(const RankRow& row, bool tensors_first = false) {
  if (!row.has_entry)
    return row.operation;
  const bool is_in_it = row.state == RankState::kWaiting ||
                        row.state == RankState::kMismatched ||
                        row.state == RankState::kStalled;
  std::string text = is_in_it ? "" : "last: ";
  text += row.operation.empty() ? row.name : row.operation;
  if (tensors_first && !row.tensors.empty())
    text += "  " + row.tensors;
  if (!row.place.empty())
    text += "  " + row.place;
  text += row.groups > 1 ? fmt::format("  {} groups", row.groups)
                         : "  " + row.group;
  if (!tensors_first && !row.tensors.empty())
    text += "  " + row.tensors;
  return text;
}

void merge(RankRow& into, const RankRow& row) {
  into.ranks.insert(into.ranks.end(), row.ranks.begin(), row.ranks.end());
  if (into.operation != row.operation)
    into.operation.clear();
  if (into.tensors != row.tensors)
    into.tensors.clear();
}

std::vector<RankRow> rows_of(const Job& job, const Verdict& verdict) {
  std::vector<RankRow> rows;
  std::map<std::pair<RankState, std::string>, std::size_t> known;
  for (const RankStatus& one : verdict.ranks) {
    RankRow row = row_of(job, one);
    const auto [found, is_new] =
        known.try_emplace({one.state, text_of(row)}, rows.size());
    if (is_new)
      rows.push_back(std::move(row));
    else
      merge(rows[found->second], row);
  }
  return rows;
}

// In a job of a thousand ranks, dozens of groups do the same.
std::vector<RankRow> without_groups(const std::vector<RankRow>& rows) {
  std::vector<RankRow> folded;
  std::map<std::tuple<RankState, bool, std::string, std::string>, std::size_t>
      known;
  std::vector<std::set<std::string>> groups;
  for (const RankRow& row : rows) {
    const auto [found, is_new] = known.try_emplace(
        {row.state, row.has_entry, row.name, row.place}, folded.size());
    if (is_new) {
      folded.push_back(row);
      groups.push_back({row.group});
    } else {
      merge(folded[found->second], row);
      groups[found->second].insert(row.group);
    }
  }
  for (std::size_t i = 0; i < folded.size(); ++i) {
    folded[i].groups = groups[i].size();
    std::ranges::sort(folded[i].ranks);
  }
  return folded;
}

// By state, then those of more ranks first.
void sort_rows(std::vector<RankRow>& rows) {
  const auto order = [](const RankRow& row) {
    return std::pair(row.state, -static_cast<std::int64_t>(row.ranks.size()));
  };
  std::ranges::stable_sort(rows, {}, order);
}

// "ranks 0-3,8", or "512 ranks" if the list is longer than `width`.
std::string ranks_label(std::span<const Rank> ranks, std::size_t width) {
  const std::string listed = ranks_label(ranks);
  return listed.size() <= width ? listed
                                : fmt::format("{} ranks", ranks.size());
}

// The states of all ranks, equal ones in one row, those at fault first. If
// there are too many rows and not `all` are wanted, ranks with the same
// operation in different groups share a row, too, and rows beyond that are
// counted.
void write_rank_rows(const Job& job, const Verdict& verdict, bool all,
                     const Terminal& terminal, Output& out) {
  std::vector<RankRow> rows = rows_of(job, verdict);
  if (rows.size() > kRows && !all)
    rows = without_groups(rows);
  sort_rows(rows);
  const std::size_t shown = all ? rows.size() : std::min(rows.size(), kRows);
  std::vector<std::string> ranks;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    ranks.push_back(ranks_label(rows[i].ranks,
                                std::max<std::size_t>(terminal.width / 3, 12)));
    widest = std::max(widest, ranks.back().size());
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string text =
        text_of(rows[i], traits(verdict.kind).tensors_differ);
    const std::string_view name = rank_state_name(rows[i].state);
    if (text.empty()) {
      out += fmt::format("  {:<10} {}\n", name, ranks[i]);
      continue;
    }
    const Style style = rows[i].state == RankState::kWaiting ||
                                rows[i].state == RankState::kDone
                            ? Style::kDim
                            : Style::kBold;
    const std::size_t used = 2 + 11 + widest + 2;
    out += fmt::format(
        "  {} {:<{}}  {}\n",
        terminal.styled(style, fmt::format("{:<10}", name)), ranks[i], widest,
        cut_to_width(text,
                     terminal.width > used + 10 ? terminal.width - used : 60,
                     terminal.ellipsis()));
  }
  if (shown < rows.size())
    out += fmt::format("  and {} more rows (--all)\n", rows.size() - shown);
}

Style headline_style(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return Style::kGreen;
    case Severity::kWarning:
      return Style::kYellow;
    case Severity::kError:
      return Style::kRed;
  }
  return Style::kRed;
}

std::string confidence_text(const Verdict& verdict) {
  return verdict.confidence == Confidence::kCertain || verdict.healthy()
             ? ""
             : fmt::format(" ({})", confidence_name(verdict.confidence));
}

std::string host_text(const Job& job, Rank rank) {
  const std::string_view host = job.host_of(rank);
  return host.empty() ? "" : fmt::format(" on {}", escape_for_terminal(host));
}

// "rank 3 on node1, ranks 8-9 on node2", or nothing if no host is known.
std::string culprit_hosts_text(const Job& job, const Verdict& verdict) {
  std::map<std::string, std::vector<Rank>> hosts;
  std::vector<Rank> unknown;
  for (const Rank rank : verdict.culprits)
    if (const std::string_view host = job.host_of(rank); !host.empty())
      hosts[escape_for_terminal(host)].push_back(rank);
    else
      unknown.push_back(rank);
  if (hosts.empty())
    return "";
  if (!unknown.empty())
    hosts["a host that is not known"] = unknown;
  std::vector<std::string> parts;
  for (const auto& [host, ranks] : hosts)
    parts.push_back(fmt::format("{} on {}", ranks_label(ranks), host));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// An entry of another rank, to compare with that of the culprit.
const Evidence* example_of(const Verdict& verdict) {
  for (const Evidence& evidence : verdict.evidence)
    if ((evidence.role == EvidenceRole::kWaiting ||
         evidence.role == EvidenceRole::kMajority) &&
        evidence.entry &&
        !std::ranges::binary_search(verdict.culprits, evidence.rank))
      return &evidence;
  return nullptr;
}

const Evidence* evidence_of(const Verdict& verdict, Rank rank) {
  for (const Evidence& evidence : verdict.evidence)
    if (evidence.rank == rank && evidence.entry)
      return &evidence;
  return nullptr;
}

// The ranks that wait for a rank directly, and how many wait for those.
struct Waiters {
  std::vector<Rank> direct;
  std::size_t further = 0;
};

Waiters waiters_of(const Verdict& verdict, Rank rank) {
  std::map<Rank, std::vector<Rank>> waiting;  // by the rank that they wait for
  for (const RankStatus& one : verdict.ranks)
    for (const Rank other : one.waiting_for)
      waiting[other].push_back(one.rank);
  Waiters found;
  found.direct = waiting[rank];
  std::set<Rank> seen(found.direct.begin(), found.direct.end());
  seen.insert(rank);
  std::vector<Rank> next = found.direct;
  while (!next.empty()) {
    const Rank at = next.back();
    next.pop_back();
    for (const Rank one : waiting[at])
      if (seen.insert(one).second) {
        next.push_back(one);
        ++found.further;
      }
  }
  return found;
}

std::string waiters_text(const Waiters& waiters, std::size_t width) {
  std::string text = ranks_label(waiters.direct, width);
  if (waiters.further > 0)
    text += fmt::format(", and {} more indirectly", waiters.further);
  return text;
}

void write_culprit(const Job& job, const Verdict& verdict, Rank rank,
                   const Terminal& terminal, Output& out) {
  const RankDump* const dump = job.find(rank);
  const Evidence* const own = evidence_of(verdict, rank);
  const Evidence* const other = example_of(verdict);
  if (dump == nullptr || own == nullptr || other == nullptr)
    return;
  const Entry here = dump->entries[*own->entry];
  const Entry there = job.find(other->rank)->entries[*other->entry];
  const std::string mine = place_label(job, here);
  const std::string theirs = place_label(job, there);
  if (mine == theirs &&
      operation_label(job, here) == operation_label(job, there))
    return;
  out += fmt::format(
      "\n  {}{}\n",
      terminal.styled(Style::kBold, fmt::format("rank {}", rank.value)),
      host_text(job, rank));
  const bool absent = traits(verdict.kind).culprits == RankState::kMissing;
  const auto tell = [&](std::string_view label, const std::string& text) {
    constexpr std::size_t kColumn = 20;
    out += fmt::format("    {:<15} {}\n", label,
                       wrapped(text, kColumn, terminal.width, kColumn));
  };
  tell(absent ? "was last in" : "is in",
       fmt::format("{}  {}", operation_label(job, here), mine));
  tell("others are in",
       fmt::format("{}  {}", operation_label(job, there), theirs));
  if (const std::optional<StackDivergence> stacks =
          stack_divergence(job, here.stack, there.stack);
      stacks && stacks->first != nullptr && stacks->second != nullptr)
    tell("stacks diverge",
         fmt::format("rank {} at {}, the others at {}", rank.value,
                     escape_for_terminal(frame_text(job, *stacks->first)),
                     escape_for_terminal(frame_text(job, *stacks->second))));
  if (const Waiters waiters = waiters_of(verdict, rank);
      !waiters.direct.empty())
    tell("waited for by", waiters_text(waiters, terminal.width));
}

std::int64_t hang_began(const Job& job, const Verdict& verdict) {
  std::int64_t begin = 0;
  for (const Evidence& evidence : verdict.evidence)
    if (evidence.role == EvidenceRole::kWaiting && evidence.entry)
      begin = std::max(
          begin, job.find(evidence.rank)->entries.created(*evidence.entry));
  return begin;
}

void write_shown_findings(const Verdict& verdict, bool all,
                          const Terminal& terminal, Output& out) {
  std::vector<Finding> shown = verdict.findings;
  std::ranges::stable_sort(shown, std::ranges::greater{}, &Finding::severity);
  const std::size_t count =
      all ? shown.size() : std::min(shown.size(), kFindings);
  if (count == 0)
    return;
  out += "\n";
  write_findings(std::span(shown).first(count), terminal, out);
  if (count < shown.size())
    out +=
        fmt::format("  and {} more findings (--all)\n", shown.size() - count);
}

// What to do about the verdict, and the command to go on with.
void write_advice(const Verdict& verdict, std::string_view source,
                  const Terminal& terminal, Output& out) {
  const auto tell = [&](const std::string& line) {
    out += fmt::format("\n{}", wrapped(line, 0, terminal.width, 6));
  };
  if (const std::string_view advice = traits(verdict.kind).advice;
      !advice.empty())
    tell(fmt::format("Do:   {}", advice));
  if (!verdict.culprits.empty())
    tell(fmt::format("Next: postflight trace {} --rank {}",
                     escape_for_terminal(source), verdict.culprits[0].value));
  else if (verdict.pending)
    tell(fmt::format("Next: postflight entries {}",
                     escape_for_terminal(source)));
  out += "\n";
}

}  // namespace

void write_trace(const Job& job, const Verdict& verdict,
                 const TraceReportOptions& options, const Terminal& terminal,
                 Output& out) {
  const VerdictTraits& kind = traits(verdict.kind);
  const std::string_view head = kind.headline;
  out += fmt::format(
      "{}  {}\n", terminal.styled(headline_style(kind.severity), head),
      wrapped(escape_for_terminal(verdict.summary) + confidence_text(verdict),
              head.size() + 2, terminal.width, head.size() + 2));
  out += "\n";
  write_rank_rows(job, verdict, options.all, terminal, out);
  if (const std::string hosts = culprit_hosts_text(job, verdict);
      !hosts.empty())
    out += fmt::format("\n  where      {}\n",
                       wrapped(hosts, 13, terminal.width, 13));
  for (std::size_t i = 0; i < verdict.culprits.size() && i < kCulprits; ++i)
    write_culprit(job, verdict, verdict.culprits[i], terminal, out);
  if (options.why)
    write_proofs(verdict, terminal, out);
  if (const std::int64_t begin = hang_began(job, verdict);
      begin != 0 && verdict.stands())
    out += fmt::format("\n  waiting since {}\n", time_label(begin));
  write_shown_findings(verdict, options.all, terminal, out);
  write_advice(verdict, options.source, terminal, out);
}

void write_rank_report(const Job& job, const Verdict& verdict, Rank rank,
                       const Terminal& terminal, Output& out) {
  constexpr std::size_t kLast = 12;
  const auto status =
      std::ranges::lower_bound(verdict.ranks, rank, {}, &RankStatus::rank);
  const RankDump* const dump = job.find(rank);
  out += fmt::format(
      "{}{}: {}\n",
      terminal.styled(Style::kBold, fmt::format("rank {}", rank.value)),
      host_text(job, rank), rank_state_name(status->state));
  if (!status->waiting_for.empty())
    out += fmt::format("  waits for {}\n", ranks_label(status->waiting_for));
  std::vector<Rank> waiting;
  for (const RankStatus& other : verdict.ranks)
    if (std::ranges::binary_search(other.waiting_for, rank))
      waiting.push_back(other.rank);
  if (!waiting.empty())
    out += fmt::format("  {} wait{} for it\n", ranks_label(waiting),
                       waiting.size() == 1 ? "s" : "");
  if (dump == nullptr) {
    out += "  left no dump\n";
    return;
  }
  out += fmt::format("  {} entries of version {} in {}\n", dump->entries.size(),
                     escape_for_terminal(job.text(dump->version)),
                     escape_for_terminal(dump->file));
  const std::size_t first =
      dump->entries.size() > kLast ? dump->entries.size() - kLast : 0;
  out += first > 0 ? fmt::format("\n  the last {}:\n", kLast) : "\n";
  for (std::size_t i = first; i < dump->entries.size(); ++i) {
    const Entry entry = dump->entries[i];
    const Call& call = job.call(entry);
    out += cut_to_width(
        fmt::format("  {:<10} {:<28} {:<14} {:<18} {}", state_name(entry.state),
                    operation_label(job, entry),
                    group_label(job, job.group(call.group)),
                    tensors_label(job, call), place_label(job, entry)),
        std::max<std::size_t>(terminal.width, 40), terminal.ellipsis());
    out += "\n";
  }
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
    std::string what = "left no dump";
    if (dump != nullptr) {
      what = "no entries of this group";
      for (std::size_t i = dump->entries.size(); i-- > 0;) {
        const Entry entry = dump->entries[i];
        if (job.call(entry).group != id)
          continue;
        what = fmt::format("{:<10} {}  {}  {}", state_name(entry.state),
                           operation_label(job, entry),
                           tensors_label(job, job.call(entry)),
                           place_label(job, entry));
        break;
      }
    }
    alike[what].push_back(member);
  }
  out += "\n  last operation of each member:\n";
  for (const auto& [what, ranks] : alike)
    out += cut_to_width(fmt::format("  {:<22} {}", ranks_label(ranks), what),
                        std::max<std::size_t>(terminal.width, 40),
                        terminal.ellipsis()) +
           "\n";
  if (verdict.group == id)
    out += fmt::format("\n  {}\n", wrapped(escape_for_terminal(verdict.summary),
                                           2, terminal.width, 2));
}

}  // namespace postflight
