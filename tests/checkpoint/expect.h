#pragma once

#include "base/error.h"
#include "base/finding.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace postflight {

// The value of a result that a test relies on; the test fails with the
// error's message if there is none.
template <class T>
T must(Result<T> result) {
  if (!result)
    throw std::runtime_error(std::string(result.error().message()));
  return *std::move(result);
}

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
