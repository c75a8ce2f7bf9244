#include "synthetic/recorder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace postflight::synthetic {
namespace {

constexpr std::int64_t kStart = 1'794'726'000'000'000'000;
constexpr std::int64_t kPoll = 100'000'000;

// When the watchdog of that rank checks next.
std::int64_t next_poll(std::int64_t after, int rank) {
  const std::int64_t phase = rank * 7'919'137LL % kPoll;
  return (after - phase + kPoll) / kPoll * kPoll + phase;
}

ShownEntry show(const Record& record, const Record& judge, int rank,
                const RecorderOptions& options) {
  const std::int64_t offset = kStart + options.clock_offset;
  ShownEntry shown{.record = &record, .created = record.created + offset};
  const bool ended =
      judge.completed != kNever && judge.completed <= options.asked_at;
  if (options.gloo()) {
    shown.retired = ended;
    return shown;
  }
  if (record.kind == RecordKind::kMember)
    return shown;
  // A member's events were never recorded, and read as passed.
  const bool passed = ended || record.kind == RecordKind::kCoalescedMember;
  const std::int64_t end = record.kind == RecordKind::kCoalescedMember
                               ? record.created
                               : judge.completed;
  if (record.unlaunched) {
    shown.state = "completed";
    shown.completed = options.asked_at + offset;
    if (options.timing)
      shown.started = shown.completed - 1500;
    return shown;
  }
  if (passed) {
    const std::int64_t seen = next_poll(end, rank);
    shown.retired = seen <= options.asked_at;
    shown.state = "completed";
    shown.completed = std::min(seen, options.asked_at) + offset;
    if (options.timing) {
      shown.started = shown.completed - 1500;
      if (shown.retired && judge.ready != kNever)
        shown.duration_ms = static_cast<double>(end - judge.ready) / 1e6;
    }
    return shown;
  }
  if (options.timing && judge.ready != kNever &&
      judge.ready <= options.asked_at) {
    shown.state = "started";
    shown.started = options.asked_at + offset;
  }
  return shown;
}

// The number by which pg_status counts.
std::int64_t status_number(const Record& record,
                           const RecorderOptions& options) {
  if (options.gloo())
    return record.operation_id;
  return record.point_to_point() || record.p2p_batch ? record.p2p_sequence
                                                     : record.sequence;
}

ShownStatus show_status(const std::vector<Record>& records, int rank, Axis axis,
                        int local_id, const RecorderOptions& options) {
  ShownStatus status{.local_id = local_id};
  std::int64_t last_seen = -1;
  for (const Record& record : records) {
    if (record.axis != axis || record.in_batch() || record.unlaunched ||
        record.created > options.asked_at)
      continue;
    const std::int64_t number = status_number(record, options);
    status.enqueued = number;
    if (options.timing && record.ready != kNever &&
        record.ready <= options.asked_at)
      status.started = number;
    if (record.completed == kNever)
      continue;
    const std::int64_t seen = next_poll(record.completed, rank);
    if (seen <= options.asked_at && seen >= last_seen) {
      status.completed = number;
      last_seen = seen;
    }
  }
  return status;
}

}  // namespace

int RecorderOptions::minor_version() const {
  int minor = 0;
  const std::size_t dot = version.find('.');
  if (dot != std::string::npos)
    std::from_chars(version.data() + dot + 1, version.data() + version.size(),
                    minor);
  return minor;
}

Shown look(int rank, const std::vector<Record>& records,
           const Topology& topology, const RecorderOptions& options) {
  Shown shown{.rank = rank};
  const Topology::Place& place = topology.place(rank);
  std::vector<bool> used(kAxes);
  std::int64_t record_id = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.created > options.asked_at)
      break;
    used[static_cast<std::size_t>(record.axis)] = true;
    if (options.gloo() && (record.point_to_point() || record.p2p_batch))
      continue;
    std::size_t judge = i;
    while (records[judge].in_batch() && judge + 1 < records.size())
      ++judge;
    ShownEntry entry = show(record, records[judge], rank, options);
    entry.record_id = record_id++;
    if (!options.only_active || entry.completed == 0)
      shown.entries.push_back(entry);
  }
  // The ring holds the newest records; of those, only-active dumps leave out.
  const std::int64_t oldest =
      record_id - static_cast<std::int64_t>(options.ring);
  std::erase_if(shown.entries, [&](const ShownEntry& entry) {
    return entry.record_id < oldest;
  });
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!used[axis])
      continue;
    shown.groups.push_back(place.group[axis]);
    shown.statuses.push_back(show_status(records, rank, static_cast<Axis>(axis),
                                         place.local_id[axis], options));
  }
  return shown;
}

std::string entry_name(const Record& record, const CallSite& site, int position,
                       const RecorderOptions& options) {
  if (record.kind == RecordKind::kClosing)
    return options.backend + ":coalesced";
  if (record.point_to_point())
    return record.send ? fmt::format("{}:send {}->{}", options.backend,
                                     position, record.peer)
                       : fmt::format("{}:recv {}<-{}", options.backend,
                                     position, record.peer);
  return fmt::format("{}:{}", options.backend, site.name);
}

std::vector<Tensor> entry_outputs(const Record& record, const CallSite& site,
                                  int position, int members) {
  if (record.kind == RecordKind::kClosing)
    return {};
  if (site.name != "scatter")
    return site.outputs;
  // Only the root has the tensors that it scatters.
  if (position != 0)
    return {{{0}, "UNKNOWN_SCALAR"}};
  return std::vector<Tensor>(static_cast<std::size_t>(members),
                             site.outputs[0]);
}

std::string member_text(const std::vector<int>& members) {
  return fmt::format("[{}]", fmt::join(members, ", "));
}

ThreadText thread_of(const Record& record, const CallSite& site, int rank) {
  const bool autograd = record.kind != RecordKind::kClosing && site.backward;
  const std::int64_t id =
      140'000'000'000'000 + rank * 1'048'576LL + (autograd ? 8'192 : 0);
  return {autograd ? "pt_autograd_0" : "python3", fmt::format("{}", id)};
}

}  // namespace postflight::synthetic
