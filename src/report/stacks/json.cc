#include "report/finding_text.h"
#include "report/stacks/report.h"
#include "stacks/stack_groups.h"

namespace postflight {
namespace {

void write_stack_frames(std::span<const StackFrame> frames, JsonWriter& json) {
  json.array("frames");
  for (const StackFrame& frame : frames) {
    json.object();
    json.field("function", frame.function);
    json.field("file", frame.file);
    json.field("line", frame.line);
    json.field("native", frame.native);
    json.array("locals");
    for (const LocalVariable& local : frame.locals) {
      json.object();
      json.field("name", local.name);
      json.field("value", local.value);
      json.end();
    }
    json.end();
    json.end();
  }
  json.end();
}

}  // namespace

void write_process_stacks(const ProcessStacks& process, JsonWriter& json) {
  if (process.rank < 0)
    json.field("rank", nullptr);
  else
    json.field("rank", process.rank);
  if (process.pid == 0)
    json.field("pid", nullptr);
  else
    json.field("pid", process.pid);
  json.field("host", process.host);
  json.field("command", process.command);
  json.field("python", process.python);
  json.field("source", process.source);
  const ThreadStack* const main = process.main_thread();
  json.array("threads");
  for (const ThreadStack& thread : process.threads) {
    json.object();
    if (thread.tid == 0)
      json.field("tid", nullptr);
    else
      json.field("tid", thread.tid);
    json.field("name", thread.name);
    json.field("main", &thread == main);
    json.field("python", thread.python);
    json.field("state", thread_state_name(thread.state));
    json.field("motion", motion_name(thread.motion));
    json.field("trouble", thread.trouble);
    write_stack_frames(thread.frames, json);
    json.end();
  }
  json.end();
}

void write_stacks_json(const StackSnapshot& snapshot, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.stacks/1");
  json.array("groups");
  for (const StackGroup& group : group_stacks(snapshot.processes)) {
    json.object();
    json.field("odd", group.odd);
    json.field("place", place_text(group.frames));
    json.array("processes", group.processes);
    json.end();
  }
  json.end();
  json.array("processes");
  for (const ProcessStacks& process : snapshot.processes) {
    json.object();
    write_process_stacks(process, json);
    json.end();
  }
  json.end();
  write_findings(snapshot.findings, json);
  json.finish();
}

}  // namespace postflight
