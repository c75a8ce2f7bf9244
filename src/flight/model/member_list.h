#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "flight/model/id.h"

namespace postflight {

// "[0, 1, 2]" as ranks, in order and each once; nothing if it says anything
// else.
std::optional<std::vector<Rank>> parse_member_list(std::string_view text);

// The lists of a job, each parsed once: every rank of a job has the same list
// of all ranks, and it is long.
class MemberLists {
 public:
  // Empty if `text`, whose id in the job is `id`, is no list of ranks.
  const std::vector<Rank>& read(TextId id, std::string_view text);

 private:
  std::map<TextId, std::vector<Rank>> lists_;
};

}  // namespace postflight
