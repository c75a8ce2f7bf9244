#include "report/flight/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/writer.h"
#include "report/finding_text.h"
#include "report/flight/entry_fields_json.h"

namespace postflight {
namespace {

void write_known_rank(std::string_view name, Rank rank, JsonWriter& json) {
  if (rank.value < 0)
    json.field(name, nullptr);
  else
    json.field(name, rank.value);
}

class FlightJson {
 public:
  FlightJson(const Matching& matching, const CollectiveTable& table,
             const ClassicAnalysis& analysis, Output& out)
      : matching_(matching),
        job_(matching.job()),
        table_(table),
        analysis_(analysis),
        json_(out) {}

  void write() {
    json_.begin("postflight.fr-trace/1");
    write_ranks();
    json_.array("without_dump", job_.without_dump(), &Rank::value);
    write_groups();
    write_stacks();
    write_entries();
    write_collectives();
    write_first_pending();
    write_problems();
    write_findings(job_.all_findings(), json_);
    json_.finish();
  }

 private:
  void write_ranks() {
    json_.array("ranks");
    for (const RankDump& dump : job_.ranks) {
      json_.object();
      json_.field("rank", dump.rank.value);
      json_.field("host", dump.host);
      json_.field("file", dump.file);
      json_.field("format", dump.json ? "json" : "pickle");
      json_.field("version", job_.text(dump.version));
      json_.field("library", job_.text(dump.library));
      json_.field("complete", dump.complete);
      if (dump.entries.empty())
        json_.field("ring_start", nullptr);
      else
        json_.id("ring_start", dump.entries[0].record_id);
      json_.field("entries", dump.entries.size());
      json_.array("statuses");
      for (const GroupStatus& status : dump.statuses) {
        json_.object();
        json_.id("local_group", status.local_group);
        json_.field("last_enqueued", status.last_enqueued);
        json_.field("last_started", status.last_started);
        json_.field("last_completed", status.last_completed);
        json_.end();
      }
      json_.end();
      write_extras(job_, dump.extras, json_);
      json_.end();
    }
    json_.end();
  }

  void write_groups() {
    json_.array("groups");
    for (std::size_t id = 0; id < job_.groups.size(); ++id) {
      const Group& group = job_.groups[id];
      json_.object();
      json_.field("id", id);
      json_.field("name", job_.text(group.name));
      json_.field("description", job_.text(group.description));
      json_.field("configured", group.configured);
      json_.array("ranks", group.members, &Rank::value);
      json_.end();
    }
    json_.end();
  }

  void write_stacks() {
    json_.array("stacks");
    for (std::uint32_t id = 0; id < job_.tables.stack_count(); ++id) {
      json_.object();
      json_.field("id", id);
      write_stack(job_, {id}, json_);
      json_.end();
    }
    json_.end();
  }

  void write_entries() {
    EntryFieldsJson fields(job_, false);
    std::uint64_t id = 0;
    json_.array("entries");
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      first_entry_.push_back(id);
      const EntryRoles roles = matching_.roles(r);
      for (std::uint32_t i = 0; i < job_.ranks[r].entries.size(); ++i) {
        json_.object();
        json_.field("id", id++);
        fields.write(job_.ranks[r], i, json_);
        json_.field("role", role_name(roles.roles[i]));
        const std::uint32_t end = roles.ends[i];
        if (end == EntryRoles::kNone)
          json_.field("batch_end", nullptr);
        else
          json_.field("batch_end", first_entry_[r] + end);
        json_.end();
      }
    }
    json_.end();
  }

  void write_collectives() {
    json_.array("collectives");
    for (std::size_t id = 0; id < table_.collectives.size(); ++id) {
      const Collective& row = table_.collectives[id];
      json_.object();
      json_.field("id", id);
      json_.field("group_id", row.group.value);
      json_.field("kind", row.message ? "message" : "collective");
      json_.field("sequence", row.sequence);
      write_known_rank("source", row.source, json_);
      write_known_rank("destination", row.destination, json_);
      json_.field("name", job_.text(job_.tables.call(row.call).name));
      if (row.difference == Difference::kNone)
        json_.field("difference", nullptr);
      else
        json_.field("difference", difference_name(row.difference));
      json_.field("blocks", row.blocks);
      json_.field("majority", row.majority);
      json_.field("earlier", row.earlier);
      json_.field("expected", row.expected);
      json_.field("joined", row.joined);
      json_.field("absent", row.absent);
      json_.field("no_dump", row.without_dump);
      json_.field("unknown", row.unknown());
      json_.field("scheduled", row.scheduled);
      json_.field("started", row.started);
      json_.field("completed", row.completed);
      json_.field("pending", row.pending);
      json_.array("matches");
      for (std::uint64_t m = 0; m < row.match_count; ++m) {
        const Match& match = table_.matches[row.first_match + m];
        json_.object();
        json_.field("entry", first_entry_[match.rank] + match.entry);
        json_.field("rank", job_.ranks[match.rank].rank.value);
        json_.field("agrees", match.agrees);
        json_.field("done", match.done);
        json_.end();
      }
      json_.end();
      json_.end();
    }
    json_.end();
  }

  // The first collective of each group that somebody waits in, as its place
  // among the collectives.
  void write_first_pending() {
    std::optional<GroupId> last;
    json_.array("first_pending");
    for (std::size_t i = 0; i < table_.collectives.size(); ++i) {
      const Collective& row = table_.collectives[i];
      if (row.message || row.earlier || row.pending == 0 || row.group == last)
        continue;
      last = row.group;
      json_.value(i);
    }
    json_.end();
  }

  // What the text reports, and what it leaves out because those who are
  // missing wait for somebody else.
  void write_problems() {
    json_.array("problems");
    for (const ClassicCollective& collective : analysis_.collectives) {
      const ClassicProblem* const problem = analysis_.problem(collective);
      if (problem == nullptr)
        continue;
      json_.object();
      json_.field("kind", problem_name(problem->kind));
      json_.field("reported", problem->reported);
      json_.field("group_id", collective.group.value);
      json_.field("sequence", entry_at(job_, collective.shown).sequence);
      json_.field("entry",
                  first_entry_[collective.shown.rank] + collective.shown.entry);
      json_.array("missing", problem->missing, &Rank::value);
      json_.array("accused", problem->accused, &Rank::value);
      json_.array("no_dump", problem->without_dump, &Rank::value);
      json_.array("errors");
      for (const ClassicError& error : problem->errors) {
        json_.object();
        json_.field("rank", job_.ranks[error.where.rank].rank.value);
        json_.field("entry",
                    first_entry_[error.where.rank] + error.where.entry);
        json_.field("mismatch", mismatch_name(error.mismatch));
        json_.field("text", error.text);
        json_.end();
      }
      json_.end();
      json_.end();
    }
    json_.end();
  }

  static std::string_view problem_name(ClassicProblemKind kind) {
    switch (kind) {
      case ClassicProblemKind::kMissingRanks:
        return "missing_ranks";
      case ClassicProblemKind::kNumel:
        return "numel";
      case ClassicProblemKind::kErrors:
        return "mismatch";
      case ClassicProblemKind::kMissingDumps:
        return "missing_dumps";
    }
    return "";
  }

  const Matching& matching_;
  const Job& job_;
  const CollectiveTable& table_;
  const ClassicAnalysis& analysis_;
  JsonWriter json_;
  std::vector<std::uint64_t> first_entry_;  // the number of each rank's first
};

}  // namespace

void write_flight_json(const Matching& matching, const CollectiveTable& table,
                       const ClassicAnalysis& analysis, Output& out) {
  FlightJson(matching, table, analysis, out).write();
}

}  // namespace postflight
