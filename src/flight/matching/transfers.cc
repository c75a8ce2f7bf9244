#include "flight/matching/transfers.h"

#include <map>
#include <tuple>

namespace postflight {
namespace {

// One direction between two ranks of a group.
using Direction = std::tuple<GroupId, Rank, Rank>;

struct Side {
  const RankDump* dump = nullptr;
  std::size_t rank_index = 0;
  std::vector<Transfer> transfers;
  std::size_t done = 0;  // at the front of them
};

struct BothSides {
  Side send;
  Side receive;
};

bool from_the_start(const RankDump& dump) {
  return dump.entries.empty() || dump.entries[0].record_id == 0;
}

// How the other side stands at the first open transfer of `side`. With both
// rings whole the n-th belongs to the n-th; else what is done is taken to be
// done on both sides.
void find_other_side(const Side& side, const Side& other, OpenTransfer& open) {
  if (other.dump == nullptr)
    return;
  const bool whole = from_the_start(*side.dump) && from_the_start(*other.dump);
  const std::size_t match = whole ? side.done : other.done;
  if (match < other.transfers.size()) {
    open.peer =
        other.transfers[match].done ? Presence::kDone : Presence::kPending;
    open.peer_closing = other.transfers[match].closing;
  } else if (other.dump->complete) {
    open.peer = Presence::kAbsent;
  }
}

}  // namespace

std::vector<OpenTransfer> find_open_transfers(const Timeline& timeline) {
  const Job& job = timeline.job();
  std::map<Direction, BothSides> pairings;
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    for (const Transfer& transfer : timeline.transfers(i)) {
      const Rank own = job.ranks[i].rank;
      BothSides& pairing =
          pairings[{transfer.group, transfer.send ? own : transfer.peer,
                    transfer.send ? transfer.peer : own}];
      Side& side = transfer.send ? pairing.send : pairing.receive;
      side.dump = &job.ranks[i];
      side.rank_index = i;
      if (transfer.done && side.done == side.transfers.size())
        ++side.done;
      side.transfers.push_back(transfer);
    }

  std::vector<OpenTransfer> open;
  for (auto& [direction, pairing] : pairings) {
    const auto& [group, source, destination] = direction;
    if (pairing.send.dump == nullptr)
      pairing.send.dump = job.find(source);
    if (pairing.receive.dump == nullptr)
      pairing.receive.dump = job.find(destination);
    for (const auto& [side, other] :
         {std::pair(&pairing.send, &pairing.receive),
          std::pair(&pairing.receive, &pairing.send)})
      if (side->done < side->transfers.size()) {
        OpenTransfer& found = open.emplace_back();
        found.rank_index = side->rank_index;
        found.transfer = side->transfers[side->done];
        find_other_side(*side, *other, found);
      }
  }
  return open;
}

}  // namespace postflight
