#include "checkpoint/torch/pickle_streams.h"

#include <algorithm>

namespace postflight {

Allowance::Allowance(std::uint64_t file_size, const Limits& limits)
    // Pickles deflate to a tenth at best, and a checkpoint has more than a
    // pickle.
    : inflated(std::min(limits.max_inflated_bytes,
                        std::max<std::uint64_t>(file_size * 8, 8 << 20))),
      looked_at(file_size * limits.max_nesting) {}

bool is_legacy_magic(std::string_view twos_complement) {
  constexpr std::string_view kMagic =
      "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  return twos_complement == kMagic;
}

}  // namespace postflight
