#pragma once

#include <cstdint>
#include <string>

#include "base/environment.h"

namespace postflight {

// The rank of this process by RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK; -1 if
// none of them is a number.
std::int32_t rank_from(const Environment& environment);

std::string host_name();

}  // namespace postflight
