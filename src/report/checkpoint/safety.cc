// What loading a checkpoint in Python would do, beside other answers about it.

#include <fmt/format.h>

#include "base/escape.h"
#include "report/checkpoint/report.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

Style safety_style(Safety safety) {
  if (safety == Safety::kSafe)
    return Style::kGreen;
  return safety >= Safety::kRunsCode ? Style::kRed : Style::kYellow;
}

}  // namespace

std::string safety_text(const SafetyVerdict& verdict,
                        const Terminal& terminal) {
  return terminal.styled(safety_style(verdict.safety()),
                         safety_name(verdict.safety()));
}

void write_safety(const SafetyVerdict& verdict, const Terminal& terminal,
                  Output& out) {
  constexpr std::size_t kIndent = 4;
  const Reason* const lead = verdict.lead();
  if (lead == nullptr)
    return;
  const std::string where =
      lead->where.empty() ? "" : fmt::format(" ({})", lead->where);
  const std::string text = fmt::format(
      "{}{}; postflight pickle shows all of it", lead->message, where);
  out += fmt::format("  {}: {}\n", safety_text(verdict, terminal),
                     wrapped(escape_for_terminal(text),
                             safety_name(verdict.safety()).size() + kIndent,
                             terminal.width, kIndent));
}

void write_safety_json(const SafetyVerdict& verdict, JsonWriter& json) {
  json.object("safety");
  json.field("name", safety_name(verdict.safety()));
  json.array("reasons");
  for (const Reason& reason : verdict.reasons()) {
    json.object();
    json.field("verdict", safety_name(reason.safety));
    json.field("kind", reason.kind);
    json.field("message", reason.message);
    json.field("where", reason.where);
    json.end();
  }
  json.end();
  json.field("reasons_omitted", verdict.omitted());
  json.end();
}

}  // namespace postflight
