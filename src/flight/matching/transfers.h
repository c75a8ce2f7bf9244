#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "flight/matching/timeline.h"

namespace postflight {

// A transfer that is not done, and what became of the other side.
struct OpenTransfer {
  std::size_t rank_index = 0;  // in Job::ranks
  Transfer transfer;
  Presence peer = Presence::kUnknown;
  // Where the other side's unit ends, if it is there.
  std::optional<std::uint32_t> peer_closing;
};

// Sends and receives are paired by their order, for each direction between two
// ranks of a group. Of each rank, group, peer and direction, the oldest that is
// not done.
std::vector<OpenTransfer> find_open_transfers(const Timeline& timeline);

}  // namespace postflight
