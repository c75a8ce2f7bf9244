#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "flight/model/id.h"

namespace postflight {

// Sorted ranks as ranges with strides, "0-15,32-1016:8"; "none" if empty.
std::string rank_set_text(std::span<const Rank> ranks);
// The same in a sentence: "rank 5", "ranks 0-3,8".
std::string ranks_label(std::span<const Rank> ranks);

// Parses a list of ranks such as "[0, 1, 2]". The result is sorted and has no
// duplicates; nothing if `text` is not such a list.
std::optional<std::vector<Rank>> parse_member_list(std::string_view text);

// A user's selection of ranks or sequence numbers, "0-15,32-1016:8": the format
// that rank_set_text prints.
class NumberSelection {
 public:
  // An empty text selects all. "5-" and "-5" are open ranges.
  static Result<NumberSelection> parse(std::string_view text);

  bool all() const { return ranges_.empty(); }
  bool has(std::int64_t number) const;
  bool has(Rank rank) const { return has(std::int64_t{rank.value}); }

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
    std::int64_t stride;
  };

  std::vector<Range> ranges_;
};

}  // namespace postflight
