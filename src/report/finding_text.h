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

}  // namespace postflight
