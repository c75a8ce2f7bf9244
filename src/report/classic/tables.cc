#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/escape.h"
#include "flight/classic/guid.h"
#include "flight/classic/text.h"
#include "pickle/repr.h"
#include "report/classic/report.h"
#include "report/classic/rows.h"
#include "report/python_table.h"

namespace postflight {
namespace {

// tabulate also takes text for a number that reads like one.
TableCell text_cell(std::string_view text) {
  std::int64_t sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const std::string_view digits = text.substr(static_cast<std::size_t>(sign));
  const bool number =
      !digits.empty() &&
      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return {escape_for_terminal(text),
          number ? TableCell::Kind::kNumber : TableCell::Kind::kText};
}

template <class Number>
TableCell number_cell(Number number) {
  return {fmt::format("{}", number), TableCell::Kind::kNumber};
}

TableCell none_cell() {
  return {"", TableCell::Kind::kNone};
}

class DatabaseTables {
 public:
  DatabaseTables(const Job& job, const ClassicAnalysis& analysis, Output& out)
      : job_(job), analysis_(analysis), tracebacks_(job, analysis), out_(out) {}

  void write() {
    write_groups();
    write_memberships();
    write_collectives();
    write_calls();
  }

 private:
  std::string guid(GroupId id) const {
    const Group& group = job_.group(id);
    return classic_guid(job_.text(group.name), group.members);
  }

  void write_groups() {
    out_ += "Groups\n";
    const std::string headers[] = {"id", "desc", "size"};
    write_python_table(
        headers, analysis_.groups.size(),
        [&](std::size_t row, std::size_t column) {
          const Group& group = job_.group(analysis_.groups[row]);
          return column == 0   ? text_cell(guid(analysis_.groups[row]))
                 : column == 1 ? text_cell(job_.text(group.description))
                               : number_cell(group.members.size());
        },
        out_);
  }

  void write_memberships() {
    out_ += "Memberships\n";
    struct Row {
      std::size_t group;
      Rank rank;
    };
    std::vector<Row> rows;
    std::vector<std::string> guids;
    for (const GroupId id : analysis_.groups) {
      for (const Rank member : job_.group(id).members)
        rows.push_back({guids.size(), member});
      guids.push_back(guid(id));
    }
    const std::string headers[] = {"group_id", "global_rank"};
    write_python_table(
        headers, rows.size(),
        [&](std::size_t row, std::size_t column) {
          return column == 0 ? text_cell(guids[rows[row].group])
                             : number_cell(rows[row].rank.value);
        },
        out_);
  }

  void write_collectives() {
    out_ += "Collectives\n";
    const std::string headers[] = {"id",
                                   "group_id",
                                   "pass_check",
                                   "collective_seq_id",
                                   "p2p_seq_id",
                                   "record_id",
                                   "pg_desc",
                                   "collective_name",
                                   "input_sizes",
                                   "output_sizes",
                                   "expected_ranks",
                                   "collective_state",
                                   "collective_frames",
                                   "input_numel",
                                   "output_numel",
                                   "missing_ranks",
                                   "mismatch_collectives",
                                   "type_of_mismatch"};
    write_python_table(
        headers, analysis_.collectives.size(),
        [&](std::size_t row, std::size_t column) {
          return collective_cell(row, column);
        },
        out_);
  }

  TableCell collective_cell(std::size_t row, std::size_t column) const {
    const ClassicCollective& collective = analysis_.collectives[row];
    const Entry entry = entry_at(job_, collective.shown);
    const Call& call = job_.call(entry);
    const ClassicVerdictFields verdict = verdict_fields(analysis_, collective);
    switch (column) {
      case 0:
        return number_cell(row);
      case 1:
        return text_cell(job_.text(call.group_name));
      case 2:
        return {verdict.pass_check ? "True" : "False"};
      case 3:
        return number_cell(entry.sequence);
      case 4:
        return number_cell(entry.p2p_sequence);
      case 5:
        return number_cell(entry.record_id);
      case 6:
        return text_cell(classic_group_text(job_, call));
      case 7:
        return text_cell(job_.text(call.name));
      case 8:
        return {sizes_text(job_.tables, call.inputs)};
      case 9:
        return {sizes_text(job_.tables, call.outputs)};
      case 10:
        return {rank_set_python(expected_ranks(job_, collective))};
      case 11:
        return {std::string(state_name(entry.state))};
      case 12:
        return {escape_for_terminal(frames_text(job_.tables, entry.stack))};
      case 13:
        return verdict.input_numel ? number_cell(*verdict.input_numel)
                                   : none_cell();
      case 14:
        return verdict.output_numel ? number_cell(*verdict.output_numel)
                                    : none_cell();
      case 15:
        return verdict.missing_ranks != nullptr
                   ? TableCell{rank_set_python(*verdict.missing_ranks)}
                   : none_cell();
      case 16:
        return verdict.errors != nullptr
                   ? TableCell{mismatch_text(row, *verdict.errors)}
                   : none_cell();
      default:
        return none_cell();
    }
  }

  // A dictionary of ranks and their Collectives, as Python prints it, but for
  // the address of the last object.
  std::string mismatch_text(std::size_t id,
                            const std::vector<ClassicError>& errors) const {
    std::string text = "{";
    for (const ClassicError& error : errors) {
      const Entry entry = entry_at(job_, error.where);
      const Call& call = job_.call(entry);
      text += fmt::format(
          "{}{}: Collective(id={}, group_id={}, pass_check=False, "
          "collective_seq_id={}, p2p_seq_id={}, record_id={}, pg_desc={}, "
          "collective_name={}, input_sizes={}, output_sizes={}, "
          "expected_ranks={}, collective_state='{}', collective_frames={}, "
          "input_numel=None, output_numel=None, missing_ranks=None, "
          "mismatch_collectives=None, type_of_mismatch=<torch.distributed."
          "flight_recorder.components.types.MatchInfo object at "
          "0x000000000000>)",
          text.size() > 1 ? ", " : "", job_.ranks[error.where.rank].rank.value,
          id, repr_string(job_.text(call.group_name)), entry.sequence,
          entry.p2p_sequence, entry.record_id,
          repr_string(classic_group_text(job_, call)),
          repr_string(job_.text(call.name)),
          sizes_text(job_.tables, call.inputs),
          sizes_text(job_.tables, call.outputs),
          rank_set_python(expected_ranks(job_, analysis_.collectives[id])),
          state_name(entry.state), frames_text(job_.tables, entry.stack));
    }
    return escape_for_terminal(text + "}");
  }

  void write_calls() {
    out_ += "NCCLCalls\n";
    const std::string headers[] = {
        "id",           "collective_id",   "group_id", "global_rank",
        "traceback_id", "collective_type", "sizes"};
    write_python_table(
        headers, analysis_.calls.size(),
        [&](std::size_t row, std::size_t column) {
          return call_cell(row, column);
        },
        out_);
  }

  TableCell call_cell(std::size_t row, std::size_t column) const {
    const ClassicCall& found = analysis_.calls[row];
    const ClassicCollective& collective =
        analysis_.collectives[found.collective];
    const Call& call = job_.call(entry_at(job_, collective.shown));
    switch (column) {
      case 0:
        return number_cell(row);
      case 1:
        return collective.matched ? number_cell(found.collective) : none_cell();
      case 2:
        return text_cell(job_.text(call.group_name));
      case 3:
        return number_cell(job_.ranks[found.where.rank].rank.value);
      case 4:
        return number_cell(
            tracebacks_.number(entry_at(job_, found.where).stack));
      case 5:
        return text_cell(job_.text(call.name));
      default:
        return {sizes_text(job_.tables, call.inputs)};
    }
  }

  const Job& job_;
  const ClassicAnalysis& analysis_;
  ClassicTracebacks tracebacks_;
  Output& out_;
};

}  // namespace

void write_classic_tables(const Job& job, const ClassicAnalysis& analysis,
                          Output& out) {
  DatabaseTables(job, analysis, out).write();
}

}  // namespace postflight
