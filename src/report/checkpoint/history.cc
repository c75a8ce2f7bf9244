#include "report/checkpoint/history.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "json/writer.h"

namespace postflight {
namespace {

// "2026-11-19 20:31", in UTC.
std::string date_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  if (::gmtime_r(&time, &parts) == nullptr)
    return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min);
}

void write_step(const ListedStep& one, JsonWriter& json) {
  json.object();
  json.field("step", one.step.step);
  json.field("path", one.step.path.string());
  json.field("bytes", one.step.bytes);
  json.field("written", date_text(one.step.written));
  json.field("whole", one.state.whole);
  json.field("tensors", one.state.tensors);
  if (!one.state.whole)
    json.field("problem", one.state.problem);
  json.end();
}

}  // namespace

void write_log(std::string_view run, std::span<const ListedStep> steps,
               const std::optional<std::string>& stated,
               const Terminal& terminal, Output& out) {
  const auto whole = std::ranges::count_if(
      steps, [](const ListedStep& one) { return one.state.whole; });
  out += fmt::format("{}  {} step{}, {} whole\n",
                     terminal.styled(Style::kBold, escape_for_terminal(run)),
                     steps.size(), steps.size() == 1 ? "" : "s", whole);
  for (const ListedStep& one : steps) {
    out +=
        fmt::format("  {:>8}  {}  {:>8}  {}  {}\n", one.step.step,
                    one.state.whole ? terminal.styled(Style::kGreen, "WHOLE  ")
                                    : terminal.styled(Style::kRed, "DAMAGED"),
                    human_bytes(one.step.bytes), date_text(one.step.written),
                    escape_for_terminal(one.step.path.string()));
    if (!one.state.whole)
      out += fmt::format("            {}\n",
                         escape_for_terminal(one.state.problem));
  }
  if (stated)
    out += fmt::format("  the run says that its latest is {}\n",
                       escape_for_terminal(*stated));
}

void write_log_json(std::string_view run, std::span<const ListedStep> steps,
                    const std::optional<std::string>& stated, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.log/1");
  json.field("run", run);
  json.field("stated_latest", stated);
  json.array("steps");
  for (const ListedStep& one : steps)
    write_step(one, json);
  json.end();
  json.array("findings");
  json.end();
  json.finish();
}

void write_latest_json(std::string_view run, const ListedStep* latest,
                       std::span<const ListedStep> newer, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.latest/1");
  json.field("run", run);
  json.key("latest");
  if (latest == nullptr)
    json.value(nullptr);
  else
    write_step(*latest, json);
  json.array("damaged");
  for (const ListedStep& one : newer)
    write_step(one, json);
  json.end();
  json.array("findings");
  json.end();
  json.finish();
}

void write_bisection(const BisectReport& report, const Bisection& found,
                     const Terminal& terminal, Output& out) {
  if (!found.first) {
    out += fmt::format(
        "{}  no step of {} meets {}\n", terminal.styled(Style::kGreen, "NEVER"),
        escape_for_terminal(report.run), escape_for_terminal(report.condition));
  } else {
    const RunStep& step = report.steps[*found.first];
    out += fmt::format("{}  step {}  {}\n  {}\n",
                       terminal.styled(Style::kRed, "FIRST"), step.step,
                       escape_for_terminal(step.path.string()),
                       escape_for_terminal(found.how));
    out += *found.first == 0
               ? std::string("  it is the oldest step that can be read\n")
               : fmt::format("  the last without it: step {}\n",
                             report.steps[*found.first - 1].step);
  }
  out += fmt::format("  {} of {} steps were read\n", found.read, report.all);
}

void write_bisection_json(const BisectReport& report, const Bisection& found,
                          Output& out) {
  JsonWriter json(out);
  json.begin("postflight.ckpt.bisect/1");
  json.field("run", report.run);
  json.field("condition", report.condition);
  json.key("first");
  if (!found.first) {
    json.value(nullptr);
  } else {
    const RunStep& step = report.steps[*found.first];
    json.object();
    json.field("step", step.step);
    json.field("path", step.path.string());
    json.field("how", found.how);
    json.end();
  }
  json.array("read");
  for (const LookedAt& one : report.looked_at) {
    json.object();
    json.field("step", one.step.step);
    json.field("met", one.met);
    json.end();
  }
  json.end();
  json.field("steps", report.all);
  json.array("findings");
  json.end();
  json.finish();
}

}  // namespace postflight
