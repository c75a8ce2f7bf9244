#include "report/finding_text.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return Style::kRed;
    case Severity::kWarning:
      return Style::kYellow;
    default:
      return Style::kDim;
  }
}

}  // namespace

void write_findings(std::span<const Finding> findings, const Terminal& terminal,
                    Output& out) {
  constexpr std::size_t kIndent = 4;
  for (const Finding& finding : findings) {
    const std::string_view name = severity_name(finding.severity);
    const std::string where =
        finding.where.empty()
            ? ""
            : fmt::format(" ({})", escape_for_terminal(finding.where));
    const std::string text =
        wrapped(escape_for_terminal(finding.message) + where,
                name.size() + kIndent, terminal.width, kIndent);
    out += fmt::format("  {}: {}\n",
                       terminal.styled(style_of(finding.severity), name), text);
  }
}

void write_finding(const Finding& finding, JsonWriter& json) {
  json.object();
  json.field("kind", finding.kind);
  json.field("severity", severity_name(finding.severity));
  json.field("message", finding.message);
  json.field("where", finding.where);
  json.end();
}

void write_findings(std::span<const Finding> findings, JsonWriter& json) {
  json.array("findings");
  for (const Finding& finding : findings)
    write_finding(finding, json);
  json.end();
}

}  // namespace postflight
