#pragma once

#include <cstdint>

#include "flight/model/job.h"

namespace postflight {

// torchft numbers the ranks of each replica's default group from 0. Makes them
// ranks of the whole job: those of rank r's replica, `replica_size` ranks each,
// begin at r / replica_size * replica_size.
void shift_replica_groups(Job& job, std::int32_t replica_size);

}  // namespace postflight
