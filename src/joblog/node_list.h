#pragma once

#include "base/error.h"
#include "base/limits.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// Removes and returns the next item of a list, up to a comma outside brackets,
// without the space around it.
std::string_view take_list_item(std::string_view& list);

// The hosts of a Slurm node list, in its order: "gpu[001-003,7],login" is
// gpu001, gpu002, gpu003, gpu7, login. Leading zeros are kept; of several
// brackets in a name the last varies fastest. Refuses lists of more than
// Limits::max_listed_hosts.
Result<std::vector<std::string>> expand_node_list(std::string_view list,
                                                  const Limits& limits = {});

// The tasks of each of `hosts` hosts, from the syntax of SLURM_TASKS_PER_NODE:
// "8(x4),2" is 8 8 8 8 2, and a single number applies to all of them. Fails if
// there are more or fewer than hosts.
Result<std::vector<std::uint32_t>> expand_task_counts(
    std::string_view text, std::size_t hosts, const Limits& limits = {});

}  // namespace postflight
