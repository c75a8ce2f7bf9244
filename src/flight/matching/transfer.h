#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flight/matching/lane.h"
#include "flight/model/job.h"

namespace postflight {

// One send or receive of one rank.
struct Transfer {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  GroupId group;
  Rank peer = {-1};  // -1: not recorded, or a receive from any rank
  bool send = false;
  bool done = false;
  std::uint32_t entry = 0;
  std::uint32_t closing = 0;  // of a batch, the entry that closes it
  // The other side, among its rank's transfers, and what is known of it.
  std::uint32_t partner = kNone;
  Presence other = Presence::kUnknown;
};

// Where a transfer is.
struct TransferPlace {
  std::uint32_t rank = 0;    // in Job::ranks
  std::uint32_t number = 0;  // among the transfers of that rank
};

// All that goes from one rank to another in a group.
struct Channel {
  GroupId group;
  Rank source = {-1};
  Rank destination = {-1};
  std::vector<TransferPlace> sends;
  std::vector<TransferPlace> receives;
  // How many at the front are done.
  std::size_t sends_done = 0;
  std::size_t receives_done = 0;
  // Send i meets receive i - shift.
  std::ptrdiff_t shift = 0;
  bool exact = false;  // not only aligned at what is done
};

// Finds the other side of each transfer; they are given for each of Job::ranks.
// The channels are in order of groups, senders and receivers.
std::vector<Channel> pair_transfers(
    const Job& job, std::vector<std::vector<Transfer>>& transfers);

}  // namespace postflight
