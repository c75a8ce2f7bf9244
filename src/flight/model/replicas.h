#pragma once

#include <cstdint>
#include <optional>

#include "flight/model/job.h"

namespace postflight {

// torchft numbers the ranks of each replica's default group from 0. Makes them
// ranks of the whole job: those of rank r's replica, `replica_size` ranks each,
// begin at r / replica_size * replica_size.
void shift_replica_groups(Job& job, std::int32_t replica_size);

// The ranks per replica of a job whose default groups are numbered so; nothing
// of any other: there, each rank is in its default group.
std::optional<std::int32_t> replica_size(const Job& job);

}  // namespace postflight
