#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

enum class Severity : std::uint8_t {
  kNote,
  kWarning,  // odd, but what was read can be relied on
  kError,    // something is lost, damaged or deceiving
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

// Something worth saying about an input that could still be read. `message` is
// a sentence without a full stop and, like `where`, may quote bytes of a file:
// whoever prints them escapes them.
struct Finding {
  std::string kind;  // a stable name_like_this, for programs
  Severity severity = Severity::kNote;
  std::string message;
  std::string where;  // a file, entry or byte; may be empty

  bool operator==(const Finding&) const = default;
};

}  // namespace postflight
