#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/output.h"
#include "checkpoint/delta/making.h"

namespace postflight {

// What ckpt delta or fold wrote.
struct DeltaReport {
  std::span<const std::string> inputs;
  std::string_view output;
  std::string_view schema;  // of its JSON
  bool dry_run = false;
  DeltaSummary summary = {};
};

void write_delta_report(const DeltaReport& report, Output& out);
void write_delta_json(const DeltaReport& report, Output& out);

}  // namespace postflight
