#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace postflight {

enum class Severity : std::uint8_t {
  kNote,
  kWarning,  // unusual, but what was read is reliable
  kError,    // something is lost, damaged or misleading
};

constexpr std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

// A problem with an input that could still be read. `message` is a sentence
// without a full stop and, like `where`, may quote bytes of a file: escape both
// before printing.
struct Finding {
  std::string kind;  // a stable identifier in snake_case, for programs
  Severity severity = Severity::kNote;
  std::string message;
  std::string where;  // a file, archive entry or offset; may be empty

  bool operator==(const Finding&) const = default;
};

// Whether any of them is an error or, if strict, a warning.
inline bool has_problem(std::span<const Finding> findings,
                        bool strict = false) {
  const Severity least = strict ? Severity::kWarning : Severity::kError;
  return std::ranges::any_of(findings, [least](const Finding& finding) {
    return finding.severity >= least;
  });
}

}  // namespace postflight
