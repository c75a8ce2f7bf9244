#include "report/flight/standing_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/display_width.h"
#include "flight/model/rank_set.h"
#include "report/flight/entry_text.h"

namespace postflight {
namespace {

constexpr std::size_t kRows = 8;

struct StandingRow {
  Standing standing = Standing::kDone;
  std::vector<Rank> ranks;
  // What they do. A text is empty where they differ in it.
  bool has_entry = false;
  std::string name;       // "all_reduce"
  std::string operation;  // "all_reduce #12"
  std::string place;
  std::string tensors;
  std::string group;
  std::size_t groups = 1;
};

StandingRow row_of(const Job& job, const RankStanding& one) {
  StandingRow row;
  row.standing = one.standing;
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
std::string text_of(const StandingRow& row, bool tensors_first = false) {
  if (!row.has_entry)
    return row.operation;
  const bool is_in_it = row.standing == Standing::kWaiting ||
                        row.standing == Standing::kMismatched ||
                        row.standing == Standing::kStalled;
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

void merge(StandingRow& into, const StandingRow& row) {
  into.ranks.insert(into.ranks.end(), row.ranks.begin(), row.ranks.end());
  if (into.operation != row.operation)
    into.operation.clear();
  if (into.tensors != row.tensors)
    into.tensors.clear();
}

std::vector<StandingRow> rows_of(const Job& job, const Verdict& verdict) {
  std::vector<StandingRow> rows;
  std::map<std::pair<Standing, std::string>, std::size_t> known;
  for (const RankStanding& one : verdict.ranks) {
    StandingRow row = row_of(job, one);
    const auto [found, is_new] =
        known.try_emplace({one.standing, text_of(row)}, rows.size());
    if (is_new)
      rows.push_back(std::move(row));
    else
      merge(rows[found->second], row);
  }
  return rows;
}

// At a thousand ranks, dozens of groups do the same.
std::vector<StandingRow> without_groups(const std::vector<StandingRow>& rows) {
  std::vector<StandingRow> folded;
  std::map<std::tuple<Standing, bool, std::string, std::string>, std::size_t>
      known;
  std::vector<std::set<std::string>> groups;
  for (const StandingRow& row : rows) {
    const auto [found, is_new] = known.try_emplace(
        {row.standing, row.has_entry, row.name, row.place}, folded.size());
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
void sort_rows(std::vector<StandingRow>& rows) {
  const auto order = [](const StandingRow& row) {
    return std::pair(row.standing,
                     -static_cast<std::int64_t>(row.ranks.size()));
  };
  std::ranges::stable_sort(rows, {}, order);
}

// "ranks 0-3,8"; "512 ranks" where naming them would take more than `width`.
std::string ranks_text(const StandingRow& row, std::size_t width) {
  const std::string named = fmt::format(
      "rank{} {}", row.ranks.size() == 1 ? "" : "s", rank_set_text(row.ranks));
  return named.size() <= width ? named
                               : fmt::format("{} ranks", row.ranks.size());
}

}  // namespace

void write_standing_rows(const Job& job, const Verdict& verdict, bool all,
                         const Terminal& terminal, Output& out) {
  std::vector<StandingRow> rows = rows_of(job, verdict);
  if (rows.size() > kRows && !all)
    rows = without_groups(rows);
  sort_rows(rows);
  const std::size_t shown = all ? rows.size() : std::min(rows.size(), kRows);
  std::vector<std::string> ranks;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    ranks.push_back(
        ranks_text(rows[i], std::max<std::size_t>(terminal.width / 3, 12)));
    widest = std::max(widest, ranks.back().size());
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string text =
        text_of(rows[i], traits(verdict.kind).tensors_differ);
    const std::string_view name = standing_name(rows[i].standing);
    if (text.empty()) {
      out += fmt::format("  {:<10} {}\n", name, ranks[i]);
      continue;
    }
    const Style style = rows[i].standing == Standing::kWaiting ||
                                rows[i].standing == Standing::kDone
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

}  // namespace postflight
