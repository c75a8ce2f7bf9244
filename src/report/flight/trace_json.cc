#include <functional>
#include <set>

#include "flight/diagnosis/call_stack.h"
#include "json/writer.h"
#include "report/finding_text.h"
#include "report/flight/trace_text.h"
#include "report/stacks/report.h"

namespace postflight {
namespace {

void write_entry(const Job& job, const Entry& entry, JsonWriter& json) {
  const Call& call = job.call(entry);
  json.id("record_id", entry.record_id);
  json.field("group", job.text(job.group(call.group).name));
  json.field("operation", job.text(call.name));
  json.field("sequence", entry.sequence);
  json.field("p2p_sequence", entry.p2p_sequence);
  json.field("state", state_name(entry.state));
  json.field("retired", entry.retired);
  json.time("created_ns",
            entry.created == 0 ? std::nullopt : std::optional(entry.created));
  const Frame* const frame = own_frame(job, entry.stack);
  if (frame == nullptr)
    return json.field("place", nullptr);
  json.object("place");
  json.field("function", job.text(frame->function));
  json.field("file", job.text(frame->file));
  json.field("line", frame->line);
  json.end();
}

void write_entry_at(std::string_view name, const Job& job, Rank rank,
                    std::optional<std::uint32_t> entry, JsonWriter& json) {
  const RankDump* const dump = job.find(rank);
  if (dump == nullptr || !entry)
    return json.field(name, nullptr);
  json.object(name);
  write_entry(job, dump->entries[*entry], json);
  json.end();
}

void write_text_or_null(std::string_view name, std::string_view text,
                        JsonWriter& json) {
  if (text.empty())
    json.field(name, nullptr);
  else
    json.field(name, text);
}

// The hosts of the ranks at fault, as far as they are known.
void write_hosts(const Job& job, const Verdict& verdict, JsonWriter& json) {
  std::set<std::string_view> hosts;
  for (const Rank rank : verdict.culprits)
    if (const std::string_view host = job.host_of(rank); !host.empty())
      hosts.insert(host);
  json.array("hosts", hosts, std::identity());
}

void write_evidence(const Job& job, const std::vector<Evidence>& all,
                    JsonWriter& json) {
  json.array("evidence");
  for (const Evidence& evidence : all) {
    json.object();
    json.field("rank", evidence.rank.value);
    json.field("role", role_name(evidence.role));
    json.field("witness", witness_name(evidence.witness));
    write_entry_at("entry", job, evidence.rank, evidence.entry, json);
    write_text_or_null("message", evidence.message, json);
    write_text_or_null("where", evidence.where, json);
    json.end();
  }
  json.end();
}

void write_verdict(const Job& job, const Verdict& verdict, JsonWriter& json) {
  json.object("verdict");
  json.field("kind", kind_name(verdict.kind));
  json.array("culprits", verdict.culprits, &Rank::value);
  write_hosts(job, verdict, json);
  json.field("confidence", confidence_name(verdict.confidence));
  json.field("summary", verdict.summary);
  if (verdict.group)
    json.field("group", job.text(job.group(*verdict.group).name));
  else
    json.field("group", nullptr);
  write_text_or_null("operation", verdict.operation, json);
  json.field("sequence", verdict.sequence);
  json.field("pending", verdict.pending);
  json.array("also");
  for (const FurtherFault& other : verdict.also) {
    json.object();
    json.field("kind", kind_name(other.kind));
    json.array("culprits", other.culprits, &Rank::value);
    json.field("summary", other.summary);
    write_evidence(job, other.evidence, json);
    json.end();
  }
  json.end();
  json.array("why");
  for (const Proof& proof : verdict.why) {
    json.object();
    json.field("culprit", proof.culprit.value);
    json.field("change", proof.change);
    json.field("alone", proof.alone);
    json.array("released", proof.released, &Rank::value);
    json.array("still_waiting", proof.waiting, &Rank::value);
    json.array("unexplained", proof.unexplained, &Rank::value);
    json.field("next", proof.next);
    json.field("supported", proof.supported);
    json.end();
  }
  json.end();
  write_evidence(job, verdict.evidence, json);
  json.end();
}

void write_ranks(const Job& job, const Verdict& verdict, JsonWriter& json) {
  json.array("ranks");
  for (const RankStatus& one : verdict.ranks) {
    json.object();
    json.field("rank", one.rank.value);
    write_text_or_null("host", job.host_of(one.rank), json);
    json.field("state", rank_state_name(one.state));
    json.field("stale", one.stale);
    json.array("waiting_for", one.waiting_for, &Rank::value);
    write_entry_at("last", job, one.rank, one.entry, json);
    json.end();
  }
  json.end();
}

void write_groups(const Job& job, JsonWriter& json) {
  json.array("groups");
  for (const Group& group : job.groups) {
    json.object();
    json.field("name", job.text(group.name));
    json.field("description", job.text(group.description));
    json.array("ranks", group.members, &Rank::value);
    json.field("configured", group.configured);
    json.end();
  }
  json.end();
}

void write_dumps(const Job& job, JsonWriter& json) {
  json.array("dumps");
  for (const RankDump& dump : job.ranks) {
    if (dump.reported)
      continue;
    json.object();
    json.field("file", dump.file);
    json.field("rank", dump.rank.value);
    json.field("version", job.text(dump.version));
    json.field("library", job.text(dump.library));
    json.field("format", dump.json ? "json" : "pickle");
    json.field("complete", dump.complete);
    json.field("entries", dump.entries.size());
    json.field("skipped", nullptr);
    json.end();
  }
  for (const SkippedFile& file : job.skipped) {
    json.object();
    json.field("file", file.file);
    if (file.rank < 0)
      json.field("rank", nullptr);
    else
      json.field("rank", file.rank);
    json.field("version", nullptr);
    json.field("library", nullptr);
    json.field("format", nullptr);
    json.field("complete", false);
    json.field("entries", 0);
    json.field("skipped", file.reason);
    json.end();
  }
  json.end();
}

}  // namespace

void write_trace_json(const Job& job, const Verdict& verdict, Output& out,
                      const StackSnapshot* stacks) {
  JsonWriter json(out);
  json.begin("postflight.trace/1");
  write_verdict(job, verdict, json);
  write_findings(verdict.findings, json);
  write_ranks(job, verdict, json);
  write_groups(job, json);
  write_dumps(job, json);
  if (stacks != nullptr) {
    json.array("stacks");
    for (const ProcessStacks& process : stacks->processes) {
      json.object();
      write_process_stacks(process, json);
      json.end();
    }
    json.end();
  }
  json.finish();
}

void write_nodes_json(const Job& job, const Verdict& verdict, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.trace.nodes/1");
  json.field("kind", kind_name(verdict.kind));
  write_hosts(job, verdict, json);
  json.array("ranks");
  for (const Rank rank : verdict.culprits) {
    json.object();
    json.field("rank", rank.value);
    write_text_or_null("host", job.host_of(rank), json);
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
