#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "flight/model/id.h"

namespace postflight {

// "trace_3.pkl" of "dumps/trace_3.pkl".
inline std::string_view base_name(std::string_view file) {
  return file.substr(file.rfind('/') + 1);
}

struct RankNameOptions {
  // As torchfrtrace's -p: the rank is the number behind this text.
  std::optional<std::string> prefix = {};
  // A regular expression whose first group is the rank.
  std::optional<std::string> pattern = {};
};

// The ranks that each name may mean, the likeliest first; none if it has no
// number, or not the prefix or pattern that was asked for. An error if the
// pattern is no regular expression with a group.
Result<std::vector<std::vector<Rank>>> read_ranks(
    std::span<const std::string> files, const RankNameOptions& options = {});

// A dump and the rank that it was found to be of.
struct NamedDump {
  std::string_view file;
  Rank rank;
};

// The hosts of the dumps of one job, as their names tell: what they have before
// or behind the rank and not in common, else the folders they lie in if there
// are several. Empty where nothing says.
std::vector<std::string> read_hosts(std::span<const NamedDump> dumps);

// The number behind "rank" or at the end of a name, with nothing but known
// endings (.json, .pkl, .gz, ...) behind it; an empty list if there is none.
std::vector<Rank> rank_candidates(std::string_view file_name);

}  // namespace postflight
