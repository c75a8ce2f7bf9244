#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "pickle/machine.h"

namespace postflight {

// A member of the oldest torch's tar, `storages` or `tensors`: pickles with raw
// numbers between them.
struct OldTarMember {
  std::vector<std::uint64_t> pickles;  // where they begin
  std::uint64_t end = 0;               // of what could be read
};

OldTarMember walk_old_member(Bytes member, bool storages, Machine& machine);

}  // namespace postflight
