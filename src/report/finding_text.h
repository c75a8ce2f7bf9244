#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/finding.h"
#include "base/output.h"
#include "base/terminal.h"
#include "json/writer.h"

namespace postflight {

// Findings, a line each, escaped: "  warning: sentence (where)".
void write_findings(std::span<const Finding> findings, const Terminal& terminal,
                    Output& out);

// One of them as a JSON object.
void write_finding(const Finding& finding, JsonWriter& json);
// "findings", the array that every JSON answer has.
void write_findings(std::span<const Finding> findings, JsonWriter& json);

// The same for answers that are not written by a JsonWriter yet.
void write_finding_json(const Finding& finding, Output& out);
void write_findings_json(std::span<const Finding> findings, Output& out);

// A JSON string; if the text was not UTF-8, "key" is followed by
// "key_escaped": true. Writes "key":"text".
void write_json_field(std::string_view key, std::string_view text, Output& out);

}  // namespace postflight
