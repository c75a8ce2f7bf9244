#include "report/flight/trace_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
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
#include "report/flight/row.h"
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

// What a row says of its entry, the parts that matter most first.
std::vector<std::string> parts_of(const RankRow& row, bool tensors_first) {
  if (!row.has_entry)
    return {row.operation};
  const bool is_in_it = row.state == RankState::kWaiting ||
                        row.state == RankState::kMismatched ||
                        row.state == RankState::kStalled;
  std::vector<std::string> parts = {
      (is_in_it ? "" : "last: ") +
      (row.operation.empty() ? row.name : row.operation)};
  // Tensors come first where they differ, as the place is then the same.
  if (tensors_first)
    parts.push_back(row.tensors);
  parts.push_back(row.place);
  parts.push_back(row.groups > 1 ? fmt::format("{} groups", row.groups)
                                 : row.group);
  if (!tensors_first)
    parts.push_back(row.tensors);
  std::erase(parts, "");
  return parts;
}

std::string text_of(const RankRow& row) {
  return fmt::format("{}", fmt::join(parts_of(row, false), "  "));
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
  const std::size_t width = row_width(terminal, all);
  constexpr std::size_t kLongestList = 60;
  const std::size_t most = all ? kUnlimitedWidth
                           : width == kUnlimitedWidth
                               ? kLongestList
                               : std::max<std::size_t>(terminal.width / 3, 12);
  std::vector<std::string> ranks;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    ranks.push_back(ranks_label(rows[i].ranks, most));
    widest = std::max(widest, ranks.back().size());
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const std::vector<std::string> parts =
        parts_of(rows[i], traits(verdict.kind).tensors_differ);
    const std::string_view name = rank_state_name(rows[i].state);
    if (parts.empty() || parts[0].empty()) {
      out += fmt::format("  {:<10} {}\n", name, ranks[i]);
      continue;
    }
    const Style style = rows[i].state == RankState::kWaiting ||
                                rows[i].state == RankState::kDone
                            ? Style::kDim
                            : Style::kBold;
    const std::size_t used = 2 + 11 + widest + 2;
    const std::size_t needed = traits(verdict.kind).tensors_differ ? 3 : 2;
    out += fmt::format("  {} {:<{}}  {}\n",
                       terminal.styled(style, fmt::format("{:<10}", name)),
                       ranks[i], widest,
                       fitted(parts, needed, used, width, terminal));
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

// What the log of a rank says of it, the reason why it ended first.
std::vector<std::string> said_by_log(const Verdict& verdict, Rank rank) {
  constexpr std::size_t kMost = 2;
  constexpr std::size_t kLongest = 300;
  std::vector<std::string> said;
  std::set<std::string_view> places;
  for (const Evidence& evidence : verdict.evidence) {
    if (evidence.rank != rank || evidence.witness != Witness::kLog ||
        evidence.message.empty() || said.size() == kMost ||
        !places.insert(evidence.where).second)
      continue;
    const std::string_view text = evidence.message;
    said.push_back(escape_for_terminal(
        fmt::format("{}{} ({})", text.substr(0, kLongest),
                    text.size() > kLongest ? "..." : "", evidence.where)));
  }
  return said;
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

// "waits in read (dataset.py:88); the same stack in both snapshots"
std::string now_text(const ThreadStack& thread, const Terminal& terminal) {
  std::string text =
      escape_for_terminal(place_text(thread.frames, terminal.ellipsis()));
  if (thread.state == ThreadState::kRunning)
    text += ", running";
  if (thread.motion == Motion::kStuck)
    text += "; stuck: the same stack in all snapshots";
  else if (thread.motion == Motion::kBusy)
    text += "; busy: its stack changes";
  return text;
}

// The frames where two stacks part, if both are the user's own: in torch's,
// which thread an operation comes from says little.
std::optional<StackDivergence> own_divergence(const Job& job, StackId mine,
                                              StackId theirs) {
  std::optional<StackDivergence> stacks = stack_divergence(job, mine, theirs);
  if (!stacks || stacks->first == nullptr || stacks->second == nullptr ||
      !is_own_frame(job, *stacks->first) || !is_own_frame(job, *stacks->second))
    return std::nullopt;
  return stacks;
}

// Logs do not tell the place.
std::string labels(const std::string& operation, const std::string& place) {
  return place.empty() ? operation : operation + "  " + place;
}

void write_culprit(const Job& job, const Verdict& verdict, Rank rank,
                   const TraceReportOptions& options, const Terminal& terminal,
                   Output& out) {
  constexpr std::size_t kColumn = 20;
  const auto tell = [&](std::string_view label, const std::string& text) {
    out += fmt::format("    {:<15} {}\n", label,
                       wrapped(text, kColumn, terminal.width, kColumn));
  };
  const RankDump* const dump = job.find(rank);
  const Evidence* const own = evidence_of(verdict, rank);
  const Evidence* const other = example_of(verdict);
  std::optional<Entry> here;
  std::optional<Entry> there;
  if (dump != nullptr && own != nullptr && other != nullptr) {
    here = dump->entries[*own->entry];
    there = job.find(other->rank)->entries[*other->entry];
    if (place_label(job, *here) == place_label(job, *there) &&
        operation_label(job, *here) == operation_label(job, *there))
      here = there = std::nullopt;
  }
  const std::vector<const ProcessStacks*> now =
      processes_of_rank(options.stacks, rank.value);
  const std::vector<std::string> said = said_by_log(verdict, rank);
  if (!here && now.empty() && said.empty())
    return;
  out += fmt::format(
      "\n  {}{}\n",
      terminal.styled(Style::kBold, fmt::format("rank {}", rank.value)),
      host_label(job, rank));
  for (const std::string& line : said)
    tell(&line == said.data() ? "its log says" : "", line);
  if (here) {
    const bool absent = traits(verdict.kind).culprits == RankState::kMissing;
    tell(absent ? "was last in" : "is in",
         labels(operation_label(job, *here), place_label(job, *here)));
    tell("others are in",
         labels(operation_label(job, *there), place_label(job, *there)));
    if (const auto stacks = own_divergence(job, here->stack, there->stack))
      tell("stacks diverge",
           fmt::format("rank {} at {}, the others at {}", rank.value,
                       escape_for_terminal(frame_text(job, *stacks->first)),
                       escape_for_terminal(frame_text(job, *stacks->second))));
  }
  for (const ProcessStacks* const process : now)
    if (const ThreadStack* const main = process->main_thread())
      tell("is now in", now_text(*main, terminal));
  if (const Waiters waiters = waiters_of(verdict, rank);
      here && !waiters.direct.empty())
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

// How to get a dump that others wait for and that can't be read; empty if there
// is none.
std::string advice_on_unreadable(const Job& job, const Verdict& verdict) {
  if (!verdict.culprits.empty() || !verdict.pending)
    return "";
  std::vector<Rank> unreadable = job.with_unreadable_dump();
  std::erase_if(unreadable, [&verdict](Rank rank) {
    return std::ranges::none_of(verdict.ranks, [rank](const RankStatus& one) {
      return std::ranges::binary_search(one.waiting_for, rank);
    });
  });
  if (unreadable.empty())
    return "";
  const bool denied = std::ranges::all_of(unreadable, [&job](Rank rank) {
    return job.skipped_of(rank)->reason.starts_with("permission denied");
  });
  const bool one = unreadable.size() == 1;
  return fmt::format(
      "{} of {}{}, and run this again.",
      denied ? (one ? "make the dump" : "make the dumps")
             : (one ? "copy the dump" : "copy the dumps"),
      ranks_label(unreadable),
      denied ? " readable, as the warning says"
             : " again from where the job ran, or make it dump again");
}

// What to do about the verdict, and the command to go on with.
void write_advice(const Job& job, const Verdict& verdict,
                  const TraceReportOptions& options, const Terminal& terminal,
                  Output& out) {
  const auto tell = [&](const std::string& line) {
    out += fmt::format("\n{}", wrapped(line, 0, terminal.width, 6));
  };
  // One line, so that it can be pasted.
  const auto next = [&](std::string_view command, std::string_view words,
                        const std::string& more) {
    out += fmt::format("\nNext: postflight {}{}{}{}", command,
                       words.empty() ? "" : " ", words, more);
  };
  const std::string unreadable = advice_on_unreadable(job, verdict);
  if (const std::string_view advice =
          unreadable.empty() ? traits(verdict.kind).advice : unreadable;
      !advice.empty())
    tell(fmt::format("Do:   {}", advice));
  if (!unreadable.empty())
    next("trace", options.trace_words, "");
  else if (!verdict.culprits.empty())
    next("trace", options.trace_words,
         fmt::format(" --rank {}", verdict.culprits[0].value));
  else if (verdict.pending && options.dumps)
    next("entries", options.entries_words, "");
  out += "\n";
}

}  // namespace

void write_trace(const Job& job, const Verdict& verdict,
                 const TraceReportOptions& options, const Terminal& terminal,
                 Output& out) {
  const VerdictTraits& kind = traits(verdict.kind);
  const std::string_view head = verdict.headline.empty()
                                    ? kind.headline
                                    : std::string_view(verdict.headline);
  out += fmt::format(
      "{}  {}\n", terminal.styled(headline_style(kind.severity), head),
      wrapped(escape_for_terminal(verdict.summary) + confidence_text(verdict),
              head.size() + 2, terminal.width, head.size() + 2));
  for (const FurtherFault& other : verdict.also)
    out += fmt::format("      {}\n",
                       wrapped("and " + escape_for_terminal(other.summary), 6,
                               terminal.width, 6));
  if (!verdict.ranks.empty())
    out += "\n";
  write_rank_rows(job, verdict, options.all, terminal, out);
  if (const std::string hosts = culprit_hosts_text(job, verdict);
      !hosts.empty())
    out += fmt::format("\n  where      {}\n",
                       wrapped(hosts, 13, terminal.width, 13));
  for (std::size_t i = 0; i < verdict.culprits.size() && i < kCulprits; ++i)
    write_culprit(job, verdict, verdict.culprits[i], options, terminal, out);
  if (options.why)
    write_proofs(verdict, terminal, out);
  if (const std::int64_t begin = hang_began(job, verdict);
      begin != 0 && verdict.stands())
    out += fmt::format("\n  waiting since {}\n", time_label(begin));
  write_shown_findings(verdict, options.all, terminal, out);
  write_advice(job, verdict, options, terminal, out);
}

}  // namespace postflight
