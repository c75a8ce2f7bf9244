#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// What an entry is among those of its rank and group.
enum class EntryRole : std::uint8_t {
  kCollective,     // has its group's number, together with the other ranks
  kCollectiveEnd,  // closes a batch of collectives, whose number it has
  kSend,
  kReceive,
  kMessagesEnd,  // closes a batch of sends and receives
  kOther,        // belongs to nothing that is in the dump
};

constexpr std::string_view role_name(EntryRole role) {
  switch (role) {
    case EntryRole::kCollective:
      return "collective";
    case EntryRole::kCollectiveEnd:
      return "collective_end";
    case EntryRole::kSend:
      return "send";
    case EntryRole::kReceive:
      return "receive";
    case EntryRole::kMessagesEnd:
      return "messages_end";
    case EntryRole::kOther:
      return "other";
  }
  return "";
}

constexpr bool is_collective(EntryRole role) {
  return role == EntryRole::kCollective || role == EntryRole::kCollectiveEnd;
}

// The roles of one rank's entries, in their order.
//
// A batch (several operations between ncclGroupStart and ncclGroupEnd) is
// recorded as its members and a closing entry "coalesced", whose state is that
// of the whole batch. The members' own states mean nothing: they may stay
// "scheduled" forever. The closing entry of a batch of transfers looks like a
// collective and repeats the number of the last one, so only the entries before
// it tell what it is.
struct EntryRoles {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<EntryRole> roles;
  std::vector<std::uint32_t> ends;  // the entry closing its batch, or kNone

  // The entry whose state and times count for this one.
  std::uint32_t decisive(std::uint32_t entry) const {
    return ends[entry] == kNone ? entry : ends[entry];
  }
};

EntryRoles entry_roles(const Job& job, const RankDump& dump,
                       std::span<const Operation> operations);

// The operations of all calls of the job, by CallId. Keeps views into the job's
// texts.
std::vector<Operation> operations_of(const Job& job);

// Whether entries before the first one may have been overwritten.
bool ring_has_wrapped(const RankDump& dump);

}  // namespace postflight
