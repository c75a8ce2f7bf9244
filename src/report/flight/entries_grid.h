#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flight/matching/collective_table.h"
#include "flight/matching/matching.h"
#include "flight/model/entry_filter.h"
#include "flight/model/interner.h"
#include "flight/model/job.h"

namespace postflight {

// All entries of a group side by side. A row is an operation of one of the
// collectives in CollectiveTable, or one of the messages that ranks exchange
// between two of them; a column is a rank, or all ranks whose cells look the
// same.

struct GridRow {
  std::uint32_t incarnation = 0;  // of the group
  std::int64_t sequence = 0;
  bool message = false;  // a send, a receive or the end of a batch of them
  // In its batch; of messages, among the rank's own of this number.
  std::uint32_t position = 0;

  auto operator<=>(const GridRow&) const = default;
};

// What is shown of an entry.
struct Look {
  CallId call;  // the first of all that read the same
  StackId stack;
  State state = State::kScheduled;  // of the entry that closes its batch
  bool retired = false;
};

struct GridCell {
  std::uint32_t row = 0;
  std::uint32_t look = 0;

  bool operator==(const GridCell&) const = default;
};

struct GridColumn {
  std::vector<Rank> ranks;
  std::vector<GridCell> cells;  // in order of rows
  // Rows before the first are of a time that the rank's ring no longer holds;
  // rows of numbers from the last on it has not come to, as far as its dump
  // tells.
  std::uint32_t known_from = 0;
  std::uint32_t absent_from = 0;
  bool tells_absence = false;
};

struct GroupGrid {
  std::vector<GridRow> rows;
  std::vector<GridColumn> columns;   // in order of their first rank
  std::uint32_t all_known_from = 0;  // the row from which on all rings go
  // Rows before this one are of earlier incarnations of the group. Who did not
  // take part there is not known.
  std::uint32_t current_from = 0;
  bool has_open_end = false;  // a dump does not tell what its rank did last
};

struct EntriesGridOptions {
  std::uint64_t last = 0;  // only so many rows of each group; 0: all
  bool stacks = false;     // entries with other stacks look different
};

class EntriesGrid {
 public:
  // A row is shown if the filter takes one of its entries; it then has those
  // of all ranks that the filter takes. Both have to outlive this.
  EntriesGrid(const Matching& matching, const CollectiveTable& table,
              const EntryFilter& filter, const EntriesGridOptions& options);

  // Empty if nothing of the group is to be shown.
  GroupGrid group(GroupId id);
  const Look& look(std::uint32_t number) const { return looks_[number]; }

 private:
  // An entry on its way to a cell.
  struct Item {
    GridRow row;
    std::uint32_t rank;  // place in Job::ranks
    std::uint32_t look;
    bool wanted;
  };
  struct RankOfGroup;

  // The row of the table that an entry is in, and its place in the batch.
  struct Place {
    std::uint32_t collective = Collective::kNone;
    std::uint32_t position = 0;
  };

  void add_rank(std::uint32_t rank, std::span<const Place> places);
  std::uint32_t look_of(const Entry& entry, const Entry& decisive);
  std::vector<RankOfGroup> ranks_of(GroupId id) const;
  std::vector<GridRow> wanted_rows(GroupId id) const;

  const Matching& matching_;
  const CollectiveTable& table_;
  const Job& job_;
  const EntryFilter& filter_;
  EntriesGridOptions options_;
  Interner<std::uint32_t> texts_;   // calls that read the same
  Interner<std::uint32_t> unique_;  // looks
  std::vector<CallId> readings_;    // the first call with each text
  std::vector<Look> looks_;
  std::vector<std::vector<Item>> items_;  // of each group, rank after rank
};

}  // namespace postflight
