#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
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

// The possible ranks of each file by its name, the likeliest first; none if it
// has no number, or does not match the prefix or pattern. Fails if the pattern
// is not a regular expression with a group.
Result<std::vector<std::vector<Rank>>> read_ranks(
    std::span<const std::string> files, const RankNameOptions& options = {});

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
