#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flight/matching/entry_role.h"
#include "flight/model/job.h"

namespace postflight {

// Where an entry lies in a job.
struct EntryPlace {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t rank = kNone;  // place in Job::ranks
  std::uint32_t entry = 0;

  bool exists() const { return rank != kNone; }
};

// A send, its receive, or both.
struct Message {
  EntryPlace send;
  EntryPlace receive;
};

// All that goes from one rank to another in a group, in order.
struct MessageStream {
  GroupId group;
  Rank source = {-1};
  Rank destination = {-1};
  std::vector<Message> messages;
};

// In order of groups, senders and receivers.
std::vector<MessageStream> pair_messages(const Job& job,
                                         std::span<const Operation> operations,
                                         std::span<const EntryRoles> roles);

}  // namespace postflight
