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

bool closes(const OpenBatch& batch, const Entry& end) {
  return !batch.members.empty() && batch.p2p_sequence == end.p2p_sequence &&
         (batch.messages || batch.sequence == end.sequence);
}

// Recorders before 2.7 wrote nothing but the closing entry of a batch of
// collectives, with a number of its own.
EntryRole role_of_lone_end(const OpenBatch& batch, const Entry& end,
                           bool wrapped) {
  const bool own_number =
      batch.seen ? batch.sequence != end.sequence : !wrapped;
  return own_number ? EntryRole::kCollective : EntryRole::kOther;
}

// A batch at the beginning of a ring may have lost members, and can't be
// compared with that of other ranks. Messages are compared one by one.
void drop_beginning(EntryRoles& found) {
  const std::uint32_t end = found.ends[0];
  if (end == EntryRoles::kNone || !is_collective(found.roles[0]))
    return;
  for (std::uint32_t i = 0; i <= end; ++i)
    if (found.ends[i] == end || i == end)
      found.roles[i] = EntryRole::kOther;
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
  std::vector<OpenBatch> batches(dump.groups.size());
  EntryRoles found;
  found.roles.reserve(dump.entries.size());
  found.ends.assign(dump.entries.size(), EntryRoles::kNone);
  for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
    const Entry entry = dump.entries[i];
    const Call& call = job.call(entry);
    const Operation& operation = operations[entry.call.value];
    OpenBatch& batch = batches[dump.group_place(call.group)];
    EntryRole role = role_of(operation, call);
    if (operation.kind == OperationKind::kCoalesced) {
      if (closes(batch, entry)) {
        role = batch.messages ? EntryRole::kMessagesEnd
                              : EntryRole::kCollectiveEnd;
        for (const std::uint32_t member : batch.members)
          found.ends[member] = i;
      } else {
        role = role_of_lone_end(batch, entry, wrapped);
      }
      batch.members.clear();
    } else {
      const bool message = !is_collective(role);
      const bool continued = message == batch.messages &&
                             (message ? entry.p2p_sequence == batch.p2p_sequence
                                      : entry.sequence == batch.sequence);
      if (!continued)
        batch.members.clear();
      batch.messages = message;
      batch.members.push_back(i);
    }
    batch.seen = true;
    batch.sequence = entry.sequence;
    batch.p2p_sequence = entry.p2p_sequence;
    found.roles.push_back(role);
  }
  if (wrapped)
    drop_beginning(found);
  return found;
}

}  // namespace postflight
