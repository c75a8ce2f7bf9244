#include "json/writer.h"
#include "report/doctor/report.h"
#include "report/finding_text.h"

namespace postflight {

void write_examination_json(const Examination& examination, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.doctor/1");
  json.field("source", examination.source);
  json.array("settings");
  for (const Setting& setting : examination.settings) {
    json.object();
    json.field("name", setting.traits->name);
    if (setting.value) {
      json.field("value", *setting.value);
      json.field("set_as", setting.set_as);
    } else {
      json.field("value", nullptr);
      json.field("set_as", nullptr);
    }
    json.field("unset", setting.traits->unset);
    json.field("meaning", setting.traits->meaning);
    json.end();
  }
  json.end();
  if (examination.folder) {
    json.object("folder");
    json.field("path", examination.folder->path);
    json.field("exists", examination.folder->exists);
    json.field("writable", examination.folder->writable);
    json.field("file_system", examination.folder->file_system);
    json.field("local", examination.folder->local);
    json.end();
  } else {
    json.field("folder", nullptr);
  }
  if (examination.ring) {
    json.object("ring");
    json.field("rank", examination.ring->rank);
    json.field("entries", examination.ring->entries);
    json.field("seconds", examination.ring->seconds);
    json.field("wrapped", examination.ring->wrapped);
    json.end();
  } else {
    json.field("ring", nullptr);
  }
  json.object("profiler");
  if (examination.profiler.perf_event_paranoid)
    json.field("perf_event_paranoid",
               *examination.profiler.perf_event_paranoid);
  else
    json.field("perf_event_paranoid", nullptr);
  json.field("ptrace_scope", examination.profiler.ptrace_scope);
  json.field("cap_sys_ptrace", examination.profiler.cap_sys_ptrace);
  json.field("cap_perfmon", examination.profiler.cap_perfmon);
  json.field("attach", examination.profiler.attach());
  json.field("launch", examination.profiler.launch());
  json.end();
  write_findings(examination.findings, json);
  json.finish();
}

}  // namespace postflight
