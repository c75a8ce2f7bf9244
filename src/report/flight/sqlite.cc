#include "report/flight/sqlite.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "flight/classic/text.h"
#include "report/flight/entry_text.h"
#include "report/flight/schema.h"
#include "report/flight/sqlite_database.h"

namespace postflight {
namespace {

using Time = std::optional<std::int64_t>;

Time recorded(std::int64_t nanoseconds) {
  return nanoseconds == 0 ? Time() : nanoseconds;
}

// NULL where nothing is known.
std::optional<std::string_view> text_or_null(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::int64_t> rank_or_null(Rank rank) {
  return rank.value < 0 ? std::nullopt
                        : std::optional(std::int64_t{rank.value});
}

// The earliest and the latest time of some entries.
struct Times {
  Time first;
  Time last;

  void add(std::int64_t created) {
    if (created == 0)
      return;
    first = first ? std::min(*first, created) : created;
    last = last ? std::max(*last, created) : created;
  }
};

// Where an entry belongs.
struct Belonging {
  std::uint32_t collective = 0;  // its row; 0: none
  bool agrees = true;
  bool done = false;
};

class FlightWriter {
 public:
  FlightWriter(const Matching& matching, const CollectiveTable& table,
               SqliteDatabase& database)
      : matching_(matching),
        job_(matching.job()),
        table_(table),
        database_(database) {
    std::int64_t next = 1;
    for (const RankDump& dump : job_.ranks) {
      first_entry_.push_back(next);
      next += static_cast<std::int64_t>(dump.entries.size());
    }
  }

  Result<> write() {
    TRY(database_.run(kFlightTables));
    TRY(write_meta());
    TRY(write_ranks());
    TRY(write_extras_of_dumps());
    TRY(write_groups());
    TRY(write_lanes());
    TRY(write_statuses());
    TRY(write_stacks());
    TRY(write_shapes());
    TRY(write_calls());
    TRY(write_collectives());
    TRY(write_entries());
    TRY(write_findings());
    TRY(database_.run(kFlightIndexes));
    return database_.run(kFlightViews);
  }

 private:
  Result<> write_meta() {
    SqliteInsert meta = TRY(database_.insert_into("meta", 2));
    TRY(meta.add("schema", "postflight.flight/1"));
    return meta.add("ranks", std::to_string(job_.ranks.size()));
  }

  Result<> write_ranks() {
    SqliteInsert ranks = TRY(database_.insert_into("ranks", 11));
    for (const Rank rank : job_.world()) {
      const RankDump* const dump = job_.find(rank);
      using std::nullopt;
      if (dump == nullptr) {
        TRY(ranks.add(rank.value, nullopt, nullopt, nullopt, nullopt, nullopt,
                      nullopt, nullopt, 0, nullopt, nullopt));
        continue;
      }
      Times times;
      for (std::size_t i = 0; i < dump->entries.size(); ++i)
        times.add(dump->entries.created(i));
      std::optional<std::int64_t> start;
      if (!dump->entries.empty())
        start = dump->entries[0].record_id;
      TRY(ranks.add(rank.value, text_or_null(dump->host), dump->file,
                    dump->json ? "json" : "pickle",
                    text_or_null(job_.text(dump->version)),
                    text_or_null(job_.text(dump->library)), dump->complete,
                    start, std::uint64_t{dump->entries.size()}, times.first,
                    times.last));
    }
    return {};
  }

  Result<> write_extras_of_dumps() {
    SqliteInsert extras = TRY(database_.insert_into("dump_extras", 3));
    for (const RankDump& dump : job_.ranks)
      for (const Extra& extra : dump.extras)
        TRY(extras.add(dump.rank.value, job_.text(extra.key),
                       job_.text(extra.value)));
    SqliteInsert skipped = TRY(database_.insert_into("skipped_files", 4));
    for (const SkippedFile& file : job_.skipped)
      TRY(skipped.add(file.file, file.reason, file.empty,
                      rank_or_null({file.rank})));
    return {};
  }

  Result<> write_groups() {
    SqliteInsert groups = TRY(database_.insert_into("groups", 5));
    SqliteInsert memberships = TRY(database_.insert_into("memberships", 3));
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      const Group& group = job_.groups[g];
      TRY(groups.add(g, job_.text(group.name), job_.text(group.description),
                     std::uint64_t{group.members.size()}, group.configured));
      std::uint32_t place = 0;
      for (const Rank member : group.members)
        TRY(memberships.add(g, member.value, place++));
    }
    return {};
  }

  // How far each member of a group came, and what its dump can tell.
  Result<> write_lanes() {
    SqliteInsert lanes = TRY(database_.insert_into("lanes", 7));
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
      for (const Lane& lane : matching_.lanes({g})) {
        if (lane.dump == nullptr)
          continue;
        const Slot* const pending = lane.first_pending();
        TRY(lanes.add(
            g, lane.rank.value,
            lane.slots.empty() ? std::nullopt
                               : std::optional(lane.slots.front().sequence),
            lane.bounded ? std::optional(lane.last_enqueued) : std::nullopt,
            pending == nullptr ? std::nullopt
                               : std::optional(pending->sequence),
            lane.tells_absence(), lane.stale));
      }
    return {};
  }

  Result<> write_statuses() {
    SqliteInsert statuses = TRY(database_.insert_into("statuses", 6));
    for (std::size_t r = 0; r < job_.ranks.size(); ++r)
      for (std::size_t i = 0; i < job_.ranks[r].statuses.size(); ++i) {
        const GroupStatus& status = job_.ranks[r].statuses[i];
        const std::optional<GroupId> group = matching_.group_of_status(r, i);
        TRY(statuses.add(job_.ranks[r].rank.value, status.local_group,
                         group ? std::optional(group->value) : std::nullopt,
                         status.last_enqueued, status.last_started,
                         status.last_completed));
      }
    return {};
  }

  Result<> write_stacks() {
    const Tables& tables = job_.tables;
    SqliteInsert frames = TRY(database_.insert_into("frames", 4));
    for (std::uint32_t id = 0; id < tables.frame_count(); ++id) {
      const Frame& frame = tables.frame({id});
      TRY(frames.add(id, job_.text(frame.function), job_.text(frame.file),
                     frame.line));
    }
    SqliteInsert stacks = TRY(database_.insert_into("stacks", 2));
    SqliteInsert parts = TRY(database_.insert_into("stack_frames", 3));
    for (std::uint32_t id = 0; id < tables.stack_count(); ++id) {
      const std::span<const FrameId> stack = tables.stack({id});
      TRY(stacks.add(id, std::uint64_t{stack.size()}));
      std::uint32_t position = 0;
      for (const FrameId frame : stack)
        TRY(parts.add(id, position++, frame.value));
    }
    SqliteInsert threads = TRY(database_.insert_into("threads", 3));
    for (std::uint32_t id = 0; id < tables.thread_count(); ++id) {
      const Thread& thread = tables.thread({id});
      TRY(threads.add(id, job_.text(thread.name), job_.text(thread.id)));
    }
    return {};
  }

  Result<> write_shapes() {
    const Tables& tables = job_.tables;
    SqliteInsert shapes = TRY(database_.insert_into("shapes", 4));
    for (std::uint32_t id = 0; id < tables.sizes_count(); ++id) {
      const auto tensors = tables.shapes({id});
      double elements = 0;  // any number may stand in a file
      for (const std::span<const std::int64_t> shape : tensors) {
        double product = 1;
        for (const std::int64_t size : shape)
          product *= static_cast<double>(size);
        elements += product;
      }
      TRY(shapes.add(id, sizes_text(tables, {id}),
                     std::uint64_t{tensors.size()}, elements));
    }
    SqliteInsert dtypes = TRY(database_.insert_into("dtypes", 2));
    for (std::uint32_t id = 0; id < tables.dtypes_count(); ++id)
      TRY(dtypes.add(id, dtype_names(tables, {id})));
    return {};
  }

  Result<> write_calls() {
    SqliteInsert calls = TRY(database_.insert_into("calls", 14));
    for (std::uint32_t id = 0; id < job_.tables.call_count(); ++id) {
      const Call& call = job_.tables.call({id});
      if (call.group.value >= job_.groups.size())
        continue;  // was resolved to another one
      const Operation operation = job_.operation(call);
      TRY(calls.add(id, job_.text(call.name), operation.backend, operation.name,
                    call.group.value, job_.text(call.group_name),
                    job_.text(call.group_description), call.local_group,
                    call.timeout_ms, call.point_to_point != 0,
                    call.inputs.value, call.outputs.value,
                    call.input_dtypes.value, call.output_dtypes.value));
    }
    return {};
  }

  Result<> write_collectives() {
    for (const RankDump& dump : job_.ranks)
      belongings_.emplace_back(dump.entries.size());
    SqliteInsert rows = TRY(database_.insert_into("collectives", 22));
    std::uint32_t id = 0;
    for (const Collective& row : table_.collectives) {
      ++id;
      Times times;
      for (std::uint64_t i = 0; i < row.match_count; ++i) {
        const Match& match = table_.matches[row.first_match + i];
        belongings_[match.rank][match.entry] = {id, match.agrees, match.done};
        times.add(job_.ranks[match.rank].entries.created(match.entry));
      }
      const std::optional<SqliteWord> difference =
          row.difference == Difference::kNone
              ? std::nullopt
              : std::optional(SqliteWord{difference_name(row.difference)});
      TRY(rows.add(id, row.group.value,
                   SqliteWord{row.message ? "message" : "collective"},
                   row.sequence, rank_or_null(row.source),
                   rank_or_null(row.destination), row.call.value, difference,
                   row.majority, row.expected, row.joined, row.absent,
                   row.without_dump, row.unknown(), row.scheduled, row.started,
                   row.completed, row.pending, times.first, times.last,
                   row.blocks, row.earlier));
    }
    return {};
  }

  Result<> write_entries() {
    SqliteInsert rows = TRY(database_.insert_into("entries", 22));
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      const RankDump& dump = job_.ranks[r];
      const EntryRoles roles = matching_.roles(r);
      for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
        const Entry entry = dump.entries[i];
        const Belonging& belonging = belongings_[r][i];
        const bool matched = belonging.collective != 0;
        const bool in_batch = roles.ends[i] != EntryRoles::kNone;
        TRY(rows.add(
            first_entry_[r] + i, dump.rank.value, i, entry.record_id,
            entry.call.value, job_.call(entry).group.value, entry.sequence,
            entry.p2p_sequence, entry.operation_id,
            SqliteWord{state_name(entry.state)}, entry.retired,
            recorded(entry.created), recorded(entry.started),
            recorded(entry.completed),
            entry.duration_ms == -1 ? std::nullopt
                                    : std::optional(entry.duration_ms),
            entry.thread.value, entry.stack.value,
            SqliteWord{role_name(roles.roles[i])},
            matched ? std::optional(belonging.collective) : std::nullopt,
            matched ? std::optional(belonging.agrees) : std::nullopt,
            in_batch ? std::optional(first_entry_[r] + roles.ends[i])
                     : std::nullopt,
            matched ? std::optional(belonging.done) : std::nullopt));
      }
    }
    SqliteInsert extras = TRY(database_.insert_into("entry_extras", 3));
    for (std::size_t r = 0; r < job_.ranks.size(); ++r)
      for (const EntryExtra& extra : job_.ranks[r].entry_extras)
        TRY(extras.add(first_entry_[r] + extra.entry,
                       job_.text(extra.extra.key),
                       job_.text(extra.extra.value)));
    return {};
  }

  Result<> write_findings() {
    SqliteInsert rows = TRY(database_.insert_into("findings", 5));
    std::uint32_t id = 0;
    for (const Finding& finding : job_.all_findings())
      TRY(rows.add(++id, finding.kind, severity_name(finding.severity),
                   finding.message, finding.where));
    return {};
  }

  const Matching& matching_;
  const Job& job_;
  const CollectiveTable& table_;
  SqliteDatabase& database_;
  std::vector<std::int64_t> first_entry_;  // the row of each rank's first
  std::vector<std::vector<Belonging>> belongings_;
};

Result<> write_file(const Matching& matching, const CollectiveTable& table,
                    const std::filesystem::path& file) {
  SqliteDatabase database = TRY(SqliteDatabase::create(file));
  TRY(FlightWriter(matching, table, database).write());
  return database.finish();
}

}  // namespace

Result<> write_flight_sqlite(const Matching& matching,
                             const CollectiveTable& table,
                             const std::filesystem::path& target,
                             Existing existing) {
  AtomicFile file = TRY(AtomicFile::create(target, existing));
  TRY(write_file(matching, table, file.temporary()).in(target.string()));
  return file.commit();
}

}  // namespace postflight
