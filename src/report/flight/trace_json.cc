#include <fmt/format.h>

#include "flight/diagnosis/stack_story.h"
#include "report/finding_text.h"
#include "report/flight/trace_text.h"

namespace postflight {
namespace {

std::string numbers(std::span<const Rank> ranks) {
  std::string text = "[";
  for (const Rank& rank : ranks) {
    if (&rank != ranks.data())
      text += ',';
    text += fmt::format("{}", rank.value);
  }
  return text + "]";
}

void write_entry(const Job& job, const Entry& entry, Output& out) {
  const Call& call = job.call(entry);
  out += fmt::format("\"record_id\":\"{}\",", entry.record_id);
  write_json_field("group", job.text(job.group(call.group).name), out);
  out += ",";
  write_json_field("operation", job.text(call.name), out);
  out += fmt::format(
      ",\"sequence\":{},\"p2p_sequence\":{},\"state\":\"{}\","
      "\"retired\":{},\"created_ns\":\"{}\"",
      entry.sequence, entry.p2p_sequence, state_name(entry.state),
      entry.retired, entry.created);
  out += ",\"place\":";
  if (const Frame* const frame = own_frame(job, entry.stack)) {
    out += "{";
    write_json_field("function", job.text(frame->function), out);
    out += ",";
    write_json_field("file", job.text(frame->file), out);
    out += fmt::format(",\"line\":{}}}", frame->line);
  } else {
    out += "null";
  }
}

void write_entry_at(const Job& job, Rank rank,
                    std::optional<std::uint32_t> entry, Output& out) {
  const RankDump* const dump = job.find(rank);
  if (dump == nullptr || !entry) {
    out += "null";
    return;
  }
  out += "{";
  write_entry(job, dump->entries[*entry], out);
  out += "}";
}

void write_verdict(const Job& job, const Verdict& verdict, Output& out) {
  out += fmt::format("{{\"kind\":\"{}\",\"culprits\":{},\"confidence\":\"{}\",",
                     kind_name(verdict.kind), numbers(verdict.culprits),
                     confidence_name(verdict.confidence));
  write_json_field("summary", verdict.summary, out);
  out += ",";
  if (verdict.group)
    write_json_field("group", job.text(job.group(*verdict.group).name), out);
  else
    out += "\"group\":null";
  out += ",";
  if (!verdict.operation.empty())
    write_json_field("operation", verdict.operation, out);
  else
    out += "\"operation\":null";
  out += verdict.sequence ? fmt::format(",\"sequence\":{}", *verdict.sequence)
                          : ",\"sequence\":null";
  out += fmt::format(",\"pending\":{},\"evidence\":[", verdict.pending);
  for (const Evidence& evidence : verdict.evidence) {
    if (&evidence != verdict.evidence.data())
      out += ",";
    out += fmt::format("{{\"rank\":{},", evidence.rank.value);
    write_json_field("role", evidence.role, out);
    out += ",\"entry\":";
    write_entry_at(job, evidence.rank, evidence.entry, out);
    out += "}";
  }
  out += "]}";
}

void write_ranks(const Job& job, const Verdict& verdict, Output& out) {
  out += "[";
  for (const RankStanding& one : verdict.ranks) {
    if (&one != verdict.ranks.data())
      out += ",";
    out += fmt::format("{{\"rank\":{},", one.rank.value);
    if (const std::string_view host = job.host_of(one.rank); !host.empty())
      write_json_field("host", host, out);
    else
      out += "\"host\":null";
    out += fmt::format(",\"state\":\"{}\",\"waiting_for\":{},\"last\":",
                       standing_name(one.standing), numbers(one.waiting_for));
    write_entry_at(job, one.rank, one.entry, out);
    out += "}";
  }
  out += "]";
}

void write_groups(const Job& job, Output& out) {
  out += "[";
  for (const Group& group : job.groups) {
    if (&group != job.groups.data())
      out += ",";
    out += "{";
    write_json_field("name", job.text(group.name), out);
    out += ",";
    write_json_field("description", job.text(group.description), out);
    out += fmt::format(",\"ranks\":{},\"configured\":{}}}",
                       numbers(group.members), group.configured);
  }
  out += "]";
}

void write_dumps(const Job& job, Output& out) {
  out += "[";
  bool first = true;
  for (const RankDump& dump : job.ranks) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("file", dump.file, out);
    out += fmt::format(",\"rank\":{},", dump.rank.value);
    write_json_field("version", job.text(dump.version), out);
    out += ",";
    write_json_field("library", job.text(dump.library), out);
    out += fmt::format(
        ",\"format\":\"{}\",\"complete\":{},\"entries\":{},\"skipped\":null}}",
        dump.json ? "json" : "pickle", dump.complete, dump.entries.size());
  }
  for (const SkippedFile& file : job.skipped) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("file", file.file, out);
    out += file.rank < 0 ? ",\"rank\":null"
                         : fmt::format(",\"rank\":{}", file.rank);
    out +=
        ",\"version\":null,\"library\":null,\"format\":null,"
        "\"complete\":false,\"entries\":0,";
    write_json_field("skipped", file.reason, out);
    out += "}";
  }
  out += "]";
}

}  // namespace

void write_trace_json(const Job& job, const Verdict& verdict, Output& out) {
  out += "{\"schema\":\"postflight.trace/1\",\"verdict\":";
  write_verdict(job, verdict, out);
  out += ",\"findings\":";
  write_findings_json(verdict.findings, out);
  out += ",\"ranks\":";
  write_ranks(job, verdict, out);
  out += ",\"groups\":";
  write_groups(job, out);
  out += ",\"dumps\":";
  write_dumps(job, out);
  out += "}\n";
}

}  // namespace postflight
