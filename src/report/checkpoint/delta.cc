#include "report/checkpoint/delta.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "json/writer.h"

namespace postflight {

void write_delta_report(const DeltaReport& report, Output& out) {
  const DeltaSummary& summary = report.summary;
  out += fmt::format("{}{} -> {}\n", report.dry_run ? "would write " : "",
                     human_bytes(summary.file_bytes),
                     escape_for_terminal(report.output));
  out += fmt::format(
      "  {} tensors, {}: {} unchanged, {} changed, {} new, {} removed\n",
      summary.tensors, human_bytes(summary.bytes), summary.same,
      summary.changed, summary.added, summary.removed);
}

void write_delta_json(const DeltaReport& report, Output& out) {
  const DeltaSummary& summary = report.summary;
  JsonWriter json(out);
  json.begin(report.schema);
  json.array("files", report.inputs);
  json.field("output", report.output);
  json.field("dry_run", report.dry_run);
  json.field("output_bytes", summary.file_bytes);
  json.field("tensors", summary.tensors);
  json.field("bytes", summary.bytes);
  json.field("unchanged", summary.same);
  json.field("changed", summary.changed);
  json.field("new", summary.added);
  json.field("removed", summary.removed);
  json.finish();
}

}  // namespace postflight
