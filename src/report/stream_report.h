#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "stream/extension/registry.h"
#include "stream/extension/transfer.h"

#include <span>
#include <string>

namespace postflight {

// One line without newline: "1.2 MB to 340 kB (28 %) in 4 ms, 300 MB/s".
std::string stream_summary(const StreamOutcome& outcome);
void write_stream_json(const StreamOutcome& outcome, Output& out);

// The transforms of a registry.
void write_transforms(std::span<const ExtensionType> types,
                      const Terminal& terminal, Output& out);
void write_transforms_json(std::span<const ExtensionType> types, Output& out);

}  // namespace postflight
