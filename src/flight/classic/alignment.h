#pragma once

#include <cstdint>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// For each rank of the job the first entry to look at. torchfrtrace drops all
// entries whose record_id is below the largest first one of any rank. That is
// right where all ranks record the same operations, and we do it where each
// group then starts with the same sequence number on all its ranks. Else the
// record ids of the ranks don't compare, and every entry counts.
std::vector<std::uint32_t> aligned_starts(const Job& job);

}  // namespace postflight
