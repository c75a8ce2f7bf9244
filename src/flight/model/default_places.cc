#include "flight/model/default_places.h"

#include <algorithm>

namespace postflight {

std::vector<std::string> default_dump_prefixes(const Environment& environment) {
  std::vector<std::string> prefixes;
  const auto add = [&](std::string prefix) {
    if (!prefix.empty() &&
        std::ranges::find(prefixes, prefix) == prefixes.end())
      prefixes.push_back(std::move(prefix));
  };
  for (const char* const name :
       {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCHCOMM_FR_DUMP_TEMP_FILE"})
    add(environment(name).value_or(""));
  const std::string home = environment("HOME").value_or("");
  const std::string cache = environment("XDG_CACHE_HOME").value_or("");
  if (!cache.empty())
    add(cache + "/torch/comm_lib_trace_rank_");
  add(home.empty() ? "/tmp/comm_lib_trace_rank_"
                   : home + "/.cache/torch/comm_lib_trace_rank_");
  add("/tmp/nccl_trace_rank_");
  if (!home.empty())
    add(home + "/.cache/torchcomm_fr_trace_");
  add("/tmp/hccl_trace_rank_");
  return prefixes;
}

}  // namespace postflight
