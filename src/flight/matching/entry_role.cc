#include "flight/matching/entry_role.h"

#include <cstddef>

namespace postflight {
namespace {

// What is known of a group while the entries of one rank go by.
struct OpenBatch {
  bool seen = false;  // any entry of the group
  bool messages = false;
  std::int64_t sequence = 0;  // of the last entry, as the next
  std::int64_t p2p_sequence = 0;
  std::vector<std::uint32_t> members;

  bool is_closed_by(std::int64_t end, std::int64_t p2p_end) const {
    return !members.empty() && p2p_sequence == p2p_end &&
           (messages || sequence == end);
  }
};

EntryRole role_of(const Operation& operation, const Call& call) {
  switch (operation.kind) {
    case OperationKind::kSend:
      return EntryRole::kSend;
    case OperationKind::kReceive:
      return EntryRole::kReceive;
    default:
      return call.point_to_point != 0 ? EntryRole::kOther
                                      : EntryRole::kCollective;
  }
}

// A closing entry without the batch that it closes. Recorders before 2.7 wrote
// nothing else of a batch of collectives, under a number of its own. The end of
// a batch of transfers repeats a number. At the beginning of a ring that has
// wrapped both look alike, unless the group never had a transfer.
EntryRole role_of_lone_end(const OpenBatch& batch, const Call& call,
                           std::int64_t sequence, std::int64_t p2p_sequence,
                           bool wrapped) {
  if (call.point_to_point != 0)
    return EntryRole::kOther;
  if (batch.seen)
    return batch.sequence != sequence ? EntryRole::kCollective
                                      : EntryRole::kOther;
  return !wrapped || p2p_sequence == 0 ? EntryRole::kCollective
                                       : EntryRole::kOther;
}

}  // namespace

std::vector<Operation> operations_of(const Job& job) {
  std::vector<Operation> operations(job.tables.call_count());
  for (std::uint32_t id = 0; id < operations.size(); ++id)
    operations[id] = job.operation(job.tables.call({id}));
  return operations;
}

bool ring_has_wrapped(const RankDump& dump) {
  return !dump.entries.empty() && dump.entries[0].record_id > 0;
}

EntryRoles entry_roles(const Job& job, const RankDump& dump,
                       std::span<const Operation> operations) {
  const bool wrapped = ring_has_wrapped(dump);
  const Entries& entries = dump.entries;
  std::vector<OpenBatch> batches(dump.groups.size());
  EntryRoles found;
  found.roles.reserve(entries.size());
  found.ends.assign(entries.size(), EntryRoles::kNone);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const CallId id = entries.call(i);
    const Call& call = job.tables.call(id);
    const std::int64_t sequence = entries.sequence(i);
    const std::int64_t p2p_sequence = entries.p2p_sequence(i);
    OpenBatch& batch = batches[dump.group_place(call.group)];
    EntryRole role = role_of(operations[id.value], call);
    if (operations[id.value].kind == OperationKind::kCoalesced) {
      if (batch.is_closed_by(sequence, p2p_sequence)) {
        role = batch.messages ? EntryRole::kMessagesEnd
                              : EntryRole::kCollectiveEnd;
        for (const std::uint32_t member : batch.members)
          found.ends[member] = i;
      } else {
        role = role_of_lone_end(batch, call, sequence, p2p_sequence, wrapped);
      }
      batch.members.clear();
    } else {
      const bool message = !is_collective(role);
      const bool continued = message == batch.messages &&
                             (message ? p2p_sequence == batch.p2p_sequence
                                      : sequence == batch.sequence);
      if (!continued)
        batch.members.clear();
      batch.messages = message;
      batch.members.push_back(i);
    }
    batch.seen = true;
    batch.sequence = sequence;
    batch.p2p_sequence = p2p_sequence;
    found.roles.push_back(role);
  }
  return found;
}

}  // namespace postflight
