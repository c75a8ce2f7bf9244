#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/pattern.h"
#include "flight/model/id.h"

namespace postflight {

// "dumps/trace_3.pkl" -> "trace_3.pkl"
inline std::string_view base_name(std::string_view file) {
  return file.substr(file.rfind('/') + 1);
}

struct RankNameOptions {
  // The rank is the number after this text, as with torchfrtrace's -p.
  std::optional<std::string> prefix = {};
  // A regular expression whose first group is the rank.
  std::optional<std::string> pattern = {};
};

// Finds ranks in the names of files.
class RankNames {
 public:
  // Fails if the pattern is not a regular expression with a group.
  static Result<RankNames> compile(const RankNameOptions& options);

  // The possible ranks of `file`, the likeliest first; none if its name has no
  // number, or does not match the prefix or pattern.
  std::vector<Rank> candidates(std::string_view file) const;

 private:
  RankNames(std::optional<std::string> prefix, std::optional<Pattern> pattern)
      : prefix_(std::move(prefix)), pattern_(std::move(pattern)) {}

  std::optional<std::string> prefix_;
  std::optional<Pattern> pattern_;
};

// A dump and its rank.
struct NamedDump {
  std::string_view file;
  Rank rank;
};

// The hosts of the dumps of one job, by their names: the part before or after
// the rank in which they differ, or else their folders if there are several.
// Empty where unknown.
std::vector<std::string> read_hosts(std::span<const NamedDump> dumps);

// The numbers in a name that may be its rank: those after "rank" first, then
// from the last to the first. Known endings (.json, .pkl, .gz, ...) are
// ignored.
std::vector<Rank> rank_candidates(std::string_view file_name);

}  // namespace postflight
