#pragma once

#include "base/error.h"
#include "base/finding.h"

#include <string>
#include <vector>

namespace postflight {

// Each finding as one line, to compare in full.
inline std::vector<std::string> lines(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings)
    lines.push_back(fmt::format("{} {} [{}]: {}",
                                severity_name(finding.severity), finding.kind,
                                finding.where, finding.message));
  return lines;
}

}  // namespace postflight
