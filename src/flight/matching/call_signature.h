#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flight/matching/collective_table.h"
#include "flight/model/job.h"

namespace postflight {

// A number for each call of the job, equal for those that may meet in one
// collective: with the same operation, sizes and dtypes. Ranks of an
// all-to-all may bring any sizes. Scatter and gather record real ones on their
// root only, and there is nothing in them to compare.
std::vector<std::uint32_t> call_signatures(
    const Job& job, std::span<const Operation> operations);

// In what two calls with other signatures differ.
Difference difference_between(const Job& job, CallId a, CallId b);

}  // namespace postflight
