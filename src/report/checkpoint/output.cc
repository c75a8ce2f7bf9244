#include "report/checkpoint/output.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "json/writer.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::uint64_t converted(const OutputPlan& plan) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(plan.tensors, [](const WrittenTensor& tensor) {
        return !(tensor.output.dtype == tensor.output.tensor->dtype);
      }));
}

bool has_values(const OutputPlan& plan) {
  return plan.as_it_is || plan.writes_values;
}

}  // namespace

void write_output_report(const Checkpoint& checkpoint, const OutputPlan& plan,
                         const OutputReport& report, const Terminal& terminal,
                         Output& out) {
  out +=
      fmt::format("{}{}, {} -> {} ({})\n", report.dry_run ? "would write " : "",
                  counted(plan.tensors.size(), "tensor"),
                  human_bytes(plan.bytes), escape_for_terminal(report.output),
                  output_format_name(plan.request.format));
  if (const std::uint64_t count = converted(plan); count > 0)
    out += fmt::format("  {} converted to {}\n", counted(count, "tensor"),
                       plan.request.dtype->name);
  if (!plan.values.empty())
    out += fmt::format("  {} {}\n", counted(plan.values.size(), "value"),
                       has_values(plan) ? std::string("with them")
                       : !report.sidecar.empty()
                           ? "-> " + escape_for_terminal(report.sidecar)
                           : "left out");
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < std::min(plan.lost.size(), kShown); ++i)
    out += fmt::format("  {}  {}: {}\n", terminal.styled(Style::kRed, "lost"),
                       shown_path(checkpoint, plan.lost[i].first),
                       escape_for_terminal(plan.lost[i].second));
  if (plan.lost.size() > kShown)
    out += fmt::format("  ... and {} more (--json lists all)\n",
                       plan.lost.size() - kShown);
  if (!report.dry_run) {
    out +=
        fmt::format("  {}, {}\n", counted(report.written.files.size(), "file"),
                    human_bytes(report.written.bytes));
    if (report.written.verified > 0)
      out += fmt::format(
          "  read back: {} the digest of the source\n",
          report.written.verified == 1
              ? std::string("the tensor has")
              : fmt::format("all {} tensors have", report.written.verified));
  }
  write_findings(checkpoint.findings(), terminal, out);
}

void write_output_json(const Checkpoint& checkpoint, const OutputPlan& plan,
                       const OutputReport& report, Output& out) {
  JsonWriter json(out);
  json.begin(report.schema);
  json.field("file", report.input);
  json.field("format", format_name(checkpoint.format()));
  json.field("output", report.output);
  json.field("to", output_format_name(plan.request.format));
  json.field("dry_run", report.dry_run);
  json.field("tensors", plan.tensors.size());
  json.field("bytes", plan.bytes);
  json.field("converted", converted(plan));
  json.object("values");
  json.field("count", plan.values.size());
  json.field("written", has_values(plan));
  if (!report.sidecar.empty())
    json.field("sidecar", report.sidecar);
  json.end();
  json.array("lost");
  for (const auto& [node, why] : plan.lost) {
    json.object();
    write_path(checkpoint, node, json);
    json.field("problem", why);
    json.end();
  }
  json.end();
  json.array("files");
  for (const OutputFile& file : report.written.files) {
    json.object();
    json.field("name", file.name);
    json.field("bytes", file.bytes);
    json.end();
  }
  json.end();
  json.field("verified", report.written.verified);
  write_findings(checkpoint.findings(), json);
  json.finish();
}

}  // namespace postflight
