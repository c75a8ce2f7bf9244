#include <fmt/format.h>

#include "report/finding_text.h"
#include "report/json_number.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

std::string spent_fields(const Spent& spent) {
  return fmt::format("\"ns\":\"{}\",\"samples\":{}", spent.ns, spent.samples);
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
                     Output& out) {
  out += ",\"functions\":[";
  bool first = true;
  for (const FunctionTime& function : summary.functions) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("name", profile.texts[function.name], out);
    out += ",";
    write_json_field("file", profile.texts[function.file], out);
    out += fmt::format(
        ",\"line\":{},\"kind\":\"{}\",\"self\":{{{}}},\"total\":{{{}}}}}",
        function.line, kind_name(function.kind), spent_fields(function.self),
        spent_fields(function.total));
  }
  out += "]";
}

void write_json_phases(const Profile& profile, const ProfileSummary& summary,
                       Output& out) {
  out += ",\"phases\":[";
  bool first = true;
  for (const PhaseTime& phase : summary.phases) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field(
        "name", phase.phase == 0 ? "" : profile.phase_name(phase.phase), out);
    out += ",";
    write_json_field("frame_id",
                     profile.texts[profile.phases[phase.phase].frame_id], out);
    out += fmt::format(",\"spent\":{{{}}}}}", spent_fields(phase.spent));
  }
  out += "]";
}

void write_threads(const Profile& profile, Output& out) {
  std::vector<Spent> spent(profile.threads.size());
  for (const ProfileSample& sample : profile.samples)
    spent[sample.thread].add({sample.weight_ns, 1});
  out += ",\"threads\":[";
  for (std::size_t i = 0; i < profile.threads.size(); ++i) {
    const ProfileThread& thread = profile.threads[i];
    out +=
        fmt::format("{}{{\"rank\":{},\"pid\":{},\"tid\":{},", i == 0 ? "" : ",",
                    thread.rank < 0 ? "null" : std::to_string(thread.rank),
                    thread.pid, thread.tid);
    write_json_field("name", profile.texts[thread.name], out);
    out += ",";
    write_json_field("command", profile.texts[thread.process], out);
    out += fmt::format(",\"spent\":{{{}}}}}", spent_fields(spent[i]));
  }
  out += "]";
}

}  // namespace

void write_profile_json(const Profile& profile, Output& out) {
  const ProfileSummary summary = summarise(profile);
  out += "{\"schema\":\"postflight.profile/1\",\"notes\":[";
  bool first = true;
  for (const auto& [key, value] : profile.notes) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("key", key, out);
    out += ",";
    write_json_field("value", value, out);
    out += "}";
  }
  out += "],\"counters\":[";
  first = true;
  for (const auto& [key, value] : profile.counters) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("name", key, out);
    out += fmt::format(",\"count\":{}}}",
                       json_integer(static_cast<std::int64_t>(value)));
  }
  out +=
      fmt::format("],\"spent\":{{{}}},\"waiting\":{{{}}}",
                  spent_fields(summary.spent), spent_fields(summary.waiting));
  write_json_phases(profile, summary, out);
  write_functions(profile, summary, out);
  out += ",\"ranks\":[";
  first = true;
  for (const RankTime& rank : summary.ranks) {
    out += fmt::format("{}{{\"rank\":{},\"threads\":{},\"spent\":{{{}}}}}",
                       first ? "" : ",",
                       rank.rank < 0 ? "null" : std::to_string(rank.rank),
                       rank.threads, spent_fields(rank.spent));
    first = false;
  }
  out += "]";
  write_threads(profile, out);
  out += ",\"findings\":";
  write_findings_json(profile.findings, out);
  out += "}\n";
}

}  // namespace postflight
