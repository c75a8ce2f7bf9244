#include "report/flight/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "report/finding_text.h"
#include "report/flight/entry_fields_json.h"
#include "report/json_number.h"

namespace postflight {
namespace {

// Puts a comma before every item of a list but the first.
class Separator {
 public:
  std::string_view next() {
    const std::string_view text = first_ ? "" : ",";
    first_ = false;
    return text;
  }

 private:
  bool first_ = true;
};

std::string ranks_json(std::span<const Rank> ranks) {
  std::string text = "[";
  for (const Rank rank : ranks)
    text += fmt::format("{}{}", text.size() == 1 ? "" : ",", rank.value);
  return text + "]";
}

std::string known_rank(Rank rank) {
  return rank.value < 0 ? "null" : fmt::format("{}", rank.value);
}

class FlightJson {
 public:
  FlightJson(const Job& job, const CollectiveTable& table, Output& out)
      : job_(job), table_(table), out_(out) {}

  void write() {
    out_ += "{\"schema\":\"postflight.fr-trace/1\",\"ranks\":[";
    write_ranks();
    out_ += fmt::format("],\"without_dump\":{},\"groups\":[",
                        ranks_json(job_.without_dump()));
    write_groups();
    out_ += "],\"stacks\":[";
    write_stacks();
    out_ += "],\"entries\":[";
    write_entries();
    out_ += "],\"collectives\":[";
    write_collectives();
    out_ += "],\"first_pending\":[";
    write_first_pending();
    out_ += "],\"findings\":";
    const std::vector<Finding> findings = job_.all_findings();
    write_findings_json(findings, out_);
    out_ += "}\n";
  }

 private:
  void write_ranks() {
    Separator comma;
    for (const RankDump& dump : job_.ranks) {
      out_ += comma.next();
      out_ += fmt::format("{{\"rank\":{},", dump.rank.value);
      write_json_field("host", dump.host, out_);
      out_ += ",";
      write_json_field("file", dump.file, out_);
      out_ += fmt::format(",\"format\":\"{}\",", dump.json ? "json" : "pickle");
      write_json_field("version", job_.text(dump.version), out_);
      out_ += ",";
      write_json_field("library", job_.text(dump.library), out_);
      out_ += fmt::format(
          ",\"complete\":{},\"ring_start\":{},\"entries\":{},\"statuses\":[",
          dump.complete,
          dump.entries.empty() ? "null" : json_id(dump.entries[0].record_id),
          dump.entries.size());
      Separator between;
      for (const GroupStatus& status : dump.statuses) {
        out_ += between.next();
        out_ += fmt::format(
            "{{\"local_group\":{},\"last_enqueued\":{},\"last_started\":{},"
            "\"last_completed\":{}}}",
            json_id(status.local_group), json_integer(status.last_enqueued),
            json_integer(status.last_started),
            json_integer(status.last_completed));
      }
      out_ += "]";
      write_extras_json(job_, dump.extras, out_);
      out_ += "}";
    }
  }

  void write_groups() {
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      const Group& group = job_.groups[g];
      out_ += fmt::format("{}{{\"id\":{},", g == 0 ? "" : ",", g);
      write_json_field("name", job_.text(group.name), out_);
      out_ += ",";
      write_json_field("description", job_.text(group.description), out_);
      out_ += fmt::format(",\"configured\":{},\"ranks\":{}}}", group.configured,
                          ranks_json(group.members));
    }
  }

  void write_stacks() {
    for (std::uint32_t id = 0; id < job_.tables.stack_count(); ++id)
      out_ += fmt::format("{}{{\"id\":{},{}}}", id == 0 ? "" : ",", id,
                          frames_json(job_, {id}));
  }

  void write_entries() {
    EntryFieldsJson fields(job_, false);
    Separator comma;
    std::uint64_t id = 0;
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      first_entry_.push_back(id);
      for (std::uint32_t i = 0; i < job_.ranks[r].entries.size(); ++i) {
        out_ += comma.next();
        out_ += fmt::format("{{\"id\":{},", id);
        fields.write(job_.ranks[r], i, out_);
        const std::uint32_t end = table_.roles[r].ends[i];
        out_ += fmt::format(",\"role\":\"{}\",\"batch_end\":{}}}",
                            role_name(table_.roles[r].roles[i]),
                            end == EntryRoles::kNone
                                ? "null"
                                : fmt::format("{}", first_entry_[r] + end));
        ++id;
      }
    }
  }

  void write_collectives() {
    for (std::size_t i = 0; i < table_.collectives.size(); ++i) {
      const Collective& row = table_.collectives[i];
      out_ += fmt::format(
          "{}{{\"id\":{},\"group_id\":{},\"kind\":\"{}\",\"sequence\":{},"
          "\"source\":{},\"destination\":{},",
          i == 0 ? "" : ",", i, row.group.value,
          row.message ? "message" : "collective", json_integer(row.sequence),
          known_rank(row.source), known_rank(row.destination));
      write_json_field("name", job_.text(job_.tables.call(row.call).name),
                       out_);
      out_ += fmt::format(
          ",\"difference\":{},\"majority\":{},\"expected\":{},\"joined\":{},"
          "\"absent\":{},\"no_dump\":{},\"unknown\":{},\"scheduled\":{},"
          "\"started\":{},\"completed\":{},\"pending\":{},\"matches\":[",
          row.difference == Difference::kNone
              ? "null"
              : fmt::format("\"{}\"", difference_name(row.difference)),
          row.majority, row.expected, row.joined, row.absent, row.without_dump,
          row.unknown(), row.scheduled, row.started, row.completed,
          row.pending);
      for (std::uint64_t m = 0; m < row.match_count; ++m) {
        const Match& match = table_.matches[row.first_match + m];
        out_ += fmt::format("{}{{\"entry\":{},\"rank\":{},\"agrees\":{}}}",
                            m == 0 ? "" : ",",
                            first_entry_[match.rank] + match.entry,
                            job_.ranks[match.rank].rank.value, match.agrees);
      }
      out_ += "]}";
    }
  }

  // The first collective of each group that somebody waits in, as its place
  // among the collectives.
  void write_first_pending() {
    Separator comma;
    std::optional<GroupId> last;
    for (std::size_t i = 0; i < table_.collectives.size(); ++i) {
      const Collective& row = table_.collectives[i];
      if (row.message || row.pending == 0 || row.group == last)
        continue;
      last = row.group;
      out_ += comma.next();
      out_ += fmt::format("{}", i);
    }
  }

  const Job& job_;
  const CollectiveTable& table_;
  Output& out_;
  std::vector<std::uint64_t> first_entry_;  // the number of each rank's first
};

}  // namespace

void write_flight_json(const Job& job, const CollectiveTable& table,
                       Output& out) {
  FlightJson(job, table, out).write();
}

}  // namespace postflight
