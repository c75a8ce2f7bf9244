#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "flight/id.h"

namespace postflight {

struct RankNameOptions {
  // As torchfrtrace's -p: the rank is the number behind this text.
  std::optional<std::string> prefix = {};
  // A regular expression whose first group is the rank.
  std::optional<std::string> pattern = {};
};

// What the name of a dump tells.
struct RankName {
  // Ranks it may mean, the likeliest first; empty if it has no number, or not
  // the prefix or pattern that was asked for.
  std::vector<Rank> candidates;
  std::string host;  // empty if it names none
};

// Reads the names of a job's files, in the order given. A host is what names
// have besides their rank and what all of them have in common, or the folder
// they lie in if there are several. An error if the pattern is no regular
// expression with a group.
Result<std::vector<RankName>> read_rank_names(
    std::span<const std::string> files, const RankNameOptions& options = {});

// The number behind "rank" or at the end of a name, with nothing but known
// endings (.json, .pkl, .gz, ...) behind it; an empty list if there is none.
std::vector<Rank> rank_candidates(std::string_view file_name);

}  // namespace postflight
