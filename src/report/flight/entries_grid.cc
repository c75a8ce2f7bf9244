#include "report/flight/entries_grid.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>

namespace postflight {

// One rank's part of a group.
struct EntriesGrid::RankOfGroup {
  Rank rank;
  std::span<const Item> items;
  const Lane* lane = nullptr;  // nullptr: it is no member
  bool wrapped = false;
};

EntriesGrid::EntriesGrid(const Matching& matching, const CollectiveTable& table,
                         const EntryFilter& filter,
                         const EntriesGridOptions& options)
    : matching_(matching),
      table_(table),
      job_(matching.job()),
      filter_(filter),
      options_(options),
      items_(job_.groups.size()) {
  std::vector<std::vector<Place>> places;  // of each rank's entries
  for (const RankDump& dump : job_.ranks)
    places.emplace_back(filter.takes(dump.rank) ? dump.entries.size() : 0);
  for (std::uint32_t c = 0; c < table.collectives.size(); ++c) {
    const Collective& collective = table.collectives[c];
    if (collective.message || !filter.takes(collective.group))
      continue;
    for (std::uint64_t i = 0; i < collective.match_count; ++i) {
      const Match& match = table.matches[collective.first_match + i];
      if (!places[match.rank].empty())
        places[match.rank][match.entry] = {c, match.position};
    }
  }
  for (std::uint32_t r = 0; r < job_.ranks.size(); ++r)
    if (filter.takes(job_.ranks[r].rank))
      add_rank(r, std::exchange(places[r], {}));
}

std::uint32_t EntriesGrid::look_of(const Entry& entry, const Entry& decisive) {
  const Call& call = job_.call(entry);
  // A transfer's name has ranks of its group.
  const bool transfer = matching_.operation(entry.call).point_to_point();
  const std::array<std::uint32_t, 6> reads = {
      call.name.value,          call.inputs.value,
      call.outputs.value,       call.input_dtypes.value,
      call.output_dtypes.value, transfer ? call.group.value + 1 : 0};
  const std::uint32_t text = texts_.intern(reads);
  if (text == readings_.size())
    readings_.push_back(entry.call);
  const std::array<std::uint32_t, 4> key = {
      text, options_.stacks ? entry.stack.value : 0,
      static_cast<std::uint32_t>(decisive.state), decisive.retired ? 1U : 0U};
  const std::uint32_t number = unique_.intern(key);
  if (number == looks_.size())
    looks_.push_back(
        {readings_[text], {key[1]}, decisive.state, decisive.retired});
  return number;
}

void EntriesGrid::add_rank(std::uint32_t rank, std::span<const Place> places) {
  const RankDump& dump = job_.ranks[rank];
  const EntryRoles roles = matching_.roles(rank);
  std::vector<std::size_t> begins;  // of each of its groups
  for (const GroupId group : dump.groups)
    begins.push_back(items_[group.value].size());
  for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
    const Entry entry = dump.entries[i];
    const GroupId group = job_.call(entry).group;
    if (!filter_.takes(group))
      continue;
    GridRow row = {.sequence = entry.sequence,
                   .message = !is_collective(roles.roles[i])};
    if (const Place& place = places[i]; place.collective != Collective::kNone)
      row = {.incarnation = table_.collectives[place.collective].incarnation,
             .sequence = entry.sequence,
             .position = place.position};
    else if (const Lane* const lane = matching_.lane(group, dump.rank))
      row.incarnation = lane->incarnation_of(i);
    const Entry decisive = dump.entries[roles.decisive(i)];
    items_[group.value].push_back(
        {row, rank, look_of(entry, decisive), filter_.takes(entry)});
  }
  // Messages of one number keep their order and are numbered.
  for (std::size_t g = 0; g < dump.groups.size(); ++g) {
    const std::span<Item> own =
        std::span(items_[dump.groups[g].value]).subspan(begins[g]);
    if (!std::ranges::is_sorted(own, {}, &Item::row))
      std::ranges::stable_sort(own, {}, &Item::row);
    for (std::size_t i = 1; i < own.size(); ++i)
      if (own[i].row.message && own[i - 1].row.message &&
          own[i].row.sequence == own[i - 1].row.sequence &&
          own[i].row.incarnation == own[i - 1].row.incarnation)
        own[i].row.position = own[i - 1].row.position + 1;
  }
}

std::vector<GridRow> EntriesGrid::wanted_rows(GroupId id) const {
  std::vector<GridRow> rows;
  for (const Item& item : items_[id.value])
    if (item.wanted)
      rows.push_back(item.row);
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (options_.last != 0 && rows.size() > options_.last)
    rows.erase(rows.begin(),
               rows.end() - static_cast<std::ptrdiff_t>(options_.last));
  return rows;
}

std::vector<EntriesGrid::RankOfGroup> EntriesGrid::ranks_of(GroupId id) const {
  // Those with entries, and members without any.
  const std::vector<Item>& items = items_[id.value];
  std::vector<std::uint32_t> places;
  for (const Item& item : items)
    if (places.empty() || places.back() != item.rank)
      places.push_back(item.rank);
  for (const Rank member : job_.group(id).members)
    if (const RankDump* const dump = job_.find(member);
        dump != nullptr && filter_.takes(member))
      places.push_back(static_cast<std::uint32_t>(dump - job_.ranks.data()));
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());

  std::vector<RankOfGroup> ranks;
  std::size_t at = 0;
  for (const std::uint32_t place : places) {
    const RankDump& dump = job_.ranks[place];
    const std::size_t begin = at;
    while (at < items.size() && items[at].rank == place)
      ++at;
    ranks.push_back({dump.rank, std::span(items).subspan(begin, at - begin),
                     matching_.lane(id, dump.rank), ring_has_wrapped(dump)});
  }
  return ranks;
}

namespace {

std::pair<std::uint32_t, std::int64_t> number_of(const GridRow& row) {
  return {row.incarnation, row.sequence};
}

// The first row beyond a number of an incarnation.
std::uint32_t row_after(std::span<const GridRow> rows,
                        std::uint32_t incarnation, std::int64_t sequence) {
  const auto found = std::ranges::upper_bound(
      rows, std::pair(incarnation, sequence), {}, number_of);
  return static_cast<std::uint32_t>(found - rows.begin());
}

std::uint32_t row_at(std::span<const GridRow> rows, const GridRow& first) {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(rows, first) -
                                    rows.begin());
}

// Whether `later`, whose ring begins at the same row or later, looks the same
// from there on. Differences are mostly at the end, so that is compared first.
bool same_from(const GridColumn& later, const GridColumn& other) {
  const std::size_t count = later.cells.size();
  if (count > other.cells.size() || later.absent_from != other.absent_from ||
      later.tells_absence != other.tells_absence)
    return false;
  if (!std::equal(later.cells.rbegin(), later.cells.rend(),
                  other.cells.rbegin()))
    return false;
  return count == other.cells.size() ||
         other.cells[other.cells.size() - count - 1].row < later.known_from;
}

// Puts columns that look the same together. A rank whose ring begins later
// than another's goes with it if all that it still holds is the same.
std::vector<GridColumn> fold(std::vector<GridColumn> columns) {
  std::ranges::stable_sort(columns, {}, &GridColumn::known_from);
  std::vector<GridColumn> folded;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_last;
  for (GridColumn& column : columns) {
    const GridCell last =
        column.cells.empty() ? GridCell{~0U, ~0U} : column.cells.back();
    std::vector<std::size_t>& candidates =
        by_last[std::uint64_t{last.row} << 32 | last.look];
    const auto found = std::ranges::find_if(candidates, [&](std::size_t i) {
      return same_from(column, folded[i]);
    });
    if (found != candidates.end()) {
      folded[*found].ranks.push_back(column.ranks[0]);
      continue;
    }
    candidates.push_back(folded.size());
    folded.push_back(std::move(column));
  }
  for (GridColumn& column : folded)
    std::ranges::sort(column.ranks);
  std::ranges::sort(folded, {},
                    [](const GridColumn& column) { return column.ranks[0]; });
  return folded;
}

}  // namespace

GroupGrid EntriesGrid::group(GroupId id) {
  GroupGrid grid;
  grid.rows = wanted_rows(id);
  if (grid.rows.empty())
    return grid;
  std::vector<GridColumn> columns;
  const std::uint32_t current = last_incarnation(matching_.lanes(id));
  grid.current_from = static_cast<std::uint32_t>(
      std::ranges::lower_bound(grid.rows, current, {}, &GridRow::incarnation) -
      grid.rows.begin());
  for (const RankOfGroup& rank : ranks_of(id)) {
    GridColumn column;
    column.ranks = {rank.rank};
    const auto row_count = static_cast<std::uint32_t>(grid.rows.size());
    column.known_from = rank.wrapped ? row_count : 0;
    if (!rank.items.empty() && rank.wrapped) {
      const GridRow& first = rank.items.front().row;
      // A message carries the number of the collective before it.
      column.known_from =
          first.message
              ? row_after(grid.rows, first.incarnation, first.sequence)
              : row_at(grid.rows, first);
    }
    if (rank.lane != nullptr) {
      column.tells_absence = rank.lane->tells_absence();
      column.absent_from =
          rank.lane->bounded
              ? row_after(grid.rows, current, rank.lane->last_enqueued)
              : row_count;
    } else if (!rank.items.empty()) {
      const GridRow& last = rank.items.back().row;
      column.absent_from =
          row_after(grid.rows, last.incarnation, last.sequence);
    }
    if (rank.items.empty())
      column.known_from = std::min(column.known_from, column.absent_from);
    auto row = grid.rows.begin();
    for (const Item& item : rank.items) {
      row = std::lower_bound(row, grid.rows.end(), item.row);
      if (row != grid.rows.end() && *row == item.row)
        column.cells.push_back(
            {static_cast<std::uint32_t>(row - grid.rows.begin()), item.look});
    }
    if (!column.cells.empty())
      column.known_from = std::min(column.known_from, column.cells[0].row);
    grid.all_known_from = std::max(grid.all_known_from, column.known_from);
    grid.has_open_end |=
        !column.tells_absence && column.absent_from < row_count;
    columns.push_back(std::move(column));
  }
  grid.columns = fold(std::move(columns));
  items_[id.value] = {};
  return grid;
}

}  // namespace postflight
