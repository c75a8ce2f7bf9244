#include "json/writer.h"
#include "profile/log/folding.h"
#include "profile/log/lines.h"
#include "report/finding_text.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

void write_spent(std::string_view name, const Spent& spent, JsonWriter& json) {
  json.object(name);
  json.time("ns", spent.ns);
  json.field("samples", spent.samples);
  json.time("system_ns", spent.system_ns);
  json.end();
}

void write_rank(std::int32_t rank, JsonWriter& json) {
  if (rank < 0)
    json.field("rank", nullptr);
  else
    json.field("rank", rank);
}

std::string_view kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPython:
      return "python";
    case FrameKind::kNative:
      return "native";
    case FrameKind::kMarker:
      return "marker";
  }
  return "";
}

void write_functions(const Profile& profile, const ProfileSummary& summary,
                     JsonWriter& json) {
  json.array("functions");
  for (const FunctionTime& function : summary.functions) {
    json.object();
    json.field("name", profile.texts[function.name]);
    json.field("file", profile.texts[function.file]);
    json.field("line", function.line);
    json.field("kind", kind_name(function.kind));
    write_spent("self", function.self, json);
    write_spent("total", function.total, json);
    json.end();
  }
  json.end();
}

void write_json_phases(const Profile& profile, const ProfileSummary& summary,
                       JsonWriter& json) {
  json.array("phases");
  for (const PhaseTime& phase : summary.phases) {
    json.object();
    json.field("name", phase.phase == 0 ? "" : profile.phase_name(phase.phase));
    json.field("frame_id", profile.texts[profile.phases[phase.phase].frame_id]);
    write_spent("spent", phase.spent, json);
    json.end();
  }
  json.end();
}

void write_threads(const Profile& profile, JsonWriter& json) {
  std::vector<Spent> spent(profile.threads.size());
  for (const ProfileSample& sample : profile.samples)
    spent[sample.thread].add({sample.weight_ns, 1, sample.system_ns});
  json.array("threads");
  for (std::size_t i = 0; i < profile.threads.size(); ++i) {
    const ProfileThread& thread = profile.threads[i];
    json.object();
    write_rank(thread.rank, json);
    json.field("pid", thread.pid);
    json.field("tid", thread.tid);
    json.field("name", profile.texts[thread.name]);
    json.field("command", profile.texts[thread.process]);
    write_spent("spent", spent[i], json);
    json.end();
  }
  json.end();
}

void write_lines(const Profile& profile, JsonWriter& json) {
  json.array("lines");
  for (const LineTime& line : lines_of(profile)) {
    json.object();
    json.field("function", profile.texts[line.function]);
    json.field("file", profile.texts[line.file]);
    json.field("line", line.line);
    json.field("samples", line.samples);
    json.time("ns", line.ns);
    json.time("system_ns", line.system_ns);
    json.time("interpreter_ns", line.interpreter_ns);
    json.time("library_ns", line.library_ns);
    json.time("gil_ns", line.gil_ns);
    json.time("waiting_ns", line.waiting_ns);
    json.end();
  }
  json.end();
}

void write_processes(const Profile& profile, JsonWriter& json) {
  json.array("processes");
  for (const ProfileProcess& process : profile.processes) {
    json.object();
    write_rank(process.rank, json);
    json.field("pid", process.pid);
    json.field("command", profile.texts[process.command]);
    json.time("user_ns", process.user_ns);
    json.time("system_ns", process.system_ns);
    json.time("sampled_ns", process.sampled_ns);
    json.field("why", profile.texts[process.why]);
    json.end();
  }
  json.end();
}

void write_compilations(const Profile& profile, JsonWriter& json) {
  json.array("compilations");
  for (const CompileTime& time : fold(profile).compilations) {
    json.object();
    json.field("function", time.function);
    json.time("ns", time.ns);
    json.time("dynamo_ns", time.dynamo_ns);
    json.time("aot_ns", time.aot_ns);
    json.time("inductor_ns", time.inductor_ns);
    json.time("compilers_ns", time.compilers_ns);
    json.field("compilers", time.compilers);
    json.field("recompiles", time.recompiles);
    json.end();
  }
  json.end();
}

}  // namespace

void write_profile_json(const Profile& profile, const ProfileReportOptions&,
                        Output& out) {
  const ProfileSummary summary = summarise(profile);
  JsonWriter json(out);
  json.begin("postflight.profile/1");
  json.array("notes");
  for (const auto& [key, value] : profile.notes) {
    json.object();
    json.field("key", key);
    json.field("value", value);
    json.end();
  }
  json.end();
  json.array("counters");
  for (const auto& [name, count] : profile.counters) {
    json.object();
    json.field("name", name);
    json.field("count", count);
    json.end();
  }
  json.end();
  write_spent("spent", summary.spent, json);
  write_spent("waiting", summary.waiting, json);
  write_json_phases(profile, summary, json);
  write_functions(profile, summary, json);
  write_lines(profile, json);
  write_compilations(profile, json);
  json.array("ranks");
  for (const RankTime& rank : summary.ranks) {
    json.object();
    write_rank(rank.rank, json);
    json.field("threads", rank.threads);
    write_spent("spent", rank.spent, json);
    json.end();
  }
  json.end();
  write_threads(profile, json);
  write_processes(profile, json);
  write_findings(profile.findings, json);
  json.finish();
}

}  // namespace postflight
