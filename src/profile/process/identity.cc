#include "profile/process/identity.h"

#include <array>
#include <charconv>
#include <optional>

#include <unistd.h>

namespace postflight {

std::int32_t rank_from(const Environment& environment) {
  for (const char* const name :
       {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
    const std::optional<std::string> text = environment(name);
    if (!text || text->empty())
      continue;
    std::int32_t rank = -1;
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, rank);
    if (error == std::errc() && stop == end && rank >= 0)
      return rank;
  }
  return -1;
}

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace postflight
