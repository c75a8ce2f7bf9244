#include "report/finding_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "base/json_string.h"

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

// Breaks `text`, which begins at `column`, into lines of `width` columns, all
// but the first indented. A word that is longer stands on its own.
std::string wrapped(std::string_view text, std::size_t column,
                    std::size_t width, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t columns = display_width(word);
    if (!out.empty() && column + 1 + columns > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
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

void write_findings_json(std::span<const Finding> findings, Output& out) {
  out += "[";
  bool first = true;
  for (const Finding& finding : findings) {
    out += first ? "{" : ",{";
    first = false;
    write_json_field("kind", finding.kind, out);
    out += ",";
    write_json_field("severity", severity_name(finding.severity), out);
    out += ",";
    write_json_field("message", finding.message, out);
    out += ",";
    write_json_field("where", finding.where, out);
    out += "}";
  }
  out += "]";
}

void write_json_field(std::string_view key, std::string_view text,
                      Output& out) {
  std::string json;
  const bool exact = append_json_string(text, json);
  out += fmt::format("\"{}\":{}{}", key, json,
                     exact ? "" : fmt::format(",\"{}_escaped\":true", key));
}

}  // namespace postflight
