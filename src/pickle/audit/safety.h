#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// What loading something in Python would do at worst, the worst last. kSafe is
// said only if every byte was looked into and every reader that people use
// would see the same there, or refuse it.
enum class Safety : std::uint8_t {
  kSafe,
  kUnknown,    // something was not looked into, or readers would differ
  kBroken,     // damaged; what could be read runs no code
  kRunsCode,   // imports or calls more than is known to be harmless
  kDangerous,  // known to run programs, evaluate source or touch files
};

// "SAFE", "UNKNOWN", "BROKEN", "RUNS CODE", "DANGEROUS".
std::string_view safety_name(Safety safety);

// One thing that keeps a file from being safe. `message` and `where` are as a
// Finding's: a sentence without a full stop, and a place; both may quote bytes
// of a file.
struct Reason {
  Safety safety = Safety::kUnknown;
  std::string kind;  // a stable identifier in snake_case, for programs
  std::string message;
  std::string where;

  bool operator==(const Reason&) const = default;
};

// The verdict on a file or on one of its items: as bad as its worst reason.
// Verdicts of the items of a file merge into that of the file. A hostile file
// can have a reason in every byte, so only the first of each degree are kept.
class SafetyVerdict {
 public:
  static constexpr std::size_t kMostOfADegree = 20;

  void add(Reason reason);
  // Adds all reasons of `other`, which is that of the item `place`.
  void merge(const SafetyVerdict& other, std::string_view place = {});

  Safety safety() const { return safety_; }
  bool is_safe() const { return safety_ == Safety::kSafe; }
  // Those kept, in the order in which they were added.
  const std::vector<Reason>& reasons() const { return reasons_; }
  // How many others there were.
  std::uint64_t omitted() const { return omitted_; }
  // The first of the worst; nullptr if safe.
  const Reason* lead() const;

 private:
  Safety safety_ = Safety::kSafe;
  std::vector<Reason> reasons_;
  std::uint64_t omitted_ = 0;
};

}  // namespace postflight
