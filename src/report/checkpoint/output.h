#pragma once

#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/writing/output.h"

namespace postflight {

// What a command wrote, or would write.
struct OutputReport {
  std::string_view input;
  std::string_view output;
  std::string_view sidecar = {};
  std::string_view schema = {};  // of its JSON
  bool dry_run = false;
  Written written = {};
};

void write_output_report(const Checkpoint& checkpoint, const OutputPlan& plan,
                         const OutputReport& report, const Terminal& terminal,
                         Output& out);
void write_output_json(const Checkpoint& checkpoint, const OutputPlan& plan,
                       const OutputReport& report, Output& out);

}  // namespace postflight
