#pragma once

#include "base/error.h"
#include "base/limits.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// Takes the next item off the front of a list, up to the comma that lies
// outside brackets, with the space around it.
std::string_view take_list_item(std::string_view& list);

// The hosts of a Slurm node list, in its order: "gpu[001-003,7],login" is
// gpu001, gpu002, gpu003, gpu7, login. Leading zeros stay; of several brackets
// in a name the last one counts fastest. Refuses lists that come to more than
// Limits::max_listed_hosts.
Result<std::vector<std::string>> expand_node_list(std::string_view list,
                                                  const Limits& limits = {});

// Tasks for each of `hosts` hosts as SLURM_TASKS_PER_NODE has them: "8(x4),2"
// is 8 8 8 8 2, and a single number "8" is meant for all of them. An error if
// they are not as many as the hosts.
Result<std::vector<std::uint32_t>> expand_task_counts(
    std::string_view text, std::size_t hosts, const Limits& limits = {});

}  // namespace postflight
