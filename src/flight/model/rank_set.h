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

// Sorted ranks as ranges with strides: "0-15,32-1016:8"; "none" if empty.
std::string rank_set_text(std::span<const Rank> ranks);

// "[0, 1, 2]" as ranks, in order and each once; nothing if it says anything
// else.
std::optional<std::vector<Rank>> parse_member_list(std::string_view text);

// Ranks or numbers as a user names them, "0-15,32-1016:8": what rank_set_text
// prints.
class NumberSelection {
 public:
  // An empty text selects all. "5-" and "-5" are open to one side.
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
