#pragma once

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "flight/model/dump.h"

namespace postflight {

inline bool same_entry(const Entry& a, const Entry& b) {
  return a.call == b.call && a.stack == b.stack && a.thread == b.thread &&
         a.record_id == b.record_id && a.sequence == b.sequence &&
         a.p2p_sequence == b.p2p_sequence && a.operation_id == b.operation_id &&
         a.created == b.created && a.started == b.started &&
         a.completed == b.completed &&
         std::bit_cast<std::uint64_t>(a.duration_ms) ==
             std::bit_cast<std::uint64_t>(b.duration_ms) &&
         a.state == b.state && a.retired == b.retired;
}

inline bool same_call(const Call& a, const Call& b) {
  return a.name == b.name && a.group_name == b.group_name &&
         a.group_description == b.group_description && a.group == b.group &&
         a.inputs == b.inputs && a.outputs == b.outputs &&
         a.input_dtypes == b.input_dtypes &&
         a.output_dtypes == b.output_dtypes && a.local_group == b.local_group &&
         a.timeout_ms == b.timeout_ms && a.point_to_point == b.point_to_point;
}

// Where two dumps first differ, down to the numbers of their texts; empty if
// they don't.
inline std::string difference(const Dump& a, const Dump& b) {
  const Tables& one = a.tables;
  const Tables& other = b.tables;
  if (one.text_count() != other.text_count())
    return fmt::format("{} and {} texts", one.text_count(), other.text_count());
  for (std::uint32_t i = 0; i < one.text_count(); ++i)
    if (one.text({i}) != other.text({i}))
      return fmt::format("text {}", i);
  if (one.frame_count() != other.frame_count())
    return "the number of frames";
  for (std::uint32_t i = 0; i < one.frame_count(); ++i)
    if (one.frame({i}) != other.frame({i}))
      return fmt::format("frame {}", i);
  if (one.stack_count() != other.stack_count())
    return "the number of stacks";
  for (std::uint32_t i = 0; i < one.stack_count(); ++i)
    if (!std::ranges::equal(one.stack({i}), other.stack({i})))
      return fmt::format("stack {}", i);
  if (one.sizes_count() != other.sizes_count())
    return "the number of sizes";
  for (std::uint32_t i = 0; i < one.sizes_count(); ++i)
    if (!std::ranges::equal(one.encoded_sizes({i}), other.encoded_sizes({i})))
      return fmt::format("sizes {}", i);
  if (one.dtypes_count() != other.dtypes_count())
    return "the number of dtypes";
  for (std::uint32_t i = 0; i < one.dtypes_count(); ++i)
    if (!std::ranges::equal(one.dtypes({i}), other.dtypes({i})))
      return fmt::format("dtypes {}", i);
  if (one.thread_count() != other.thread_count())
    return "the number of threads";
  for (std::uint32_t i = 0; i < one.thread_count(); ++i)
    if (one.thread({i}) != other.thread({i}))
      return fmt::format("thread {}", i);
  if (one.call_count() != other.call_count())
    return "the number of calls";
  for (std::uint32_t i = 0; i < one.call_count(); ++i)
    if (!same_call(one.call({i}), other.call({i})))
      return fmt::format("call {}", i);
  if (a.entries.size() != b.entries.size())
    return "the number of entries";
  for (std::size_t i = 0; i < a.entries.size(); ++i)
    if (!same_entry(a.entries[i], b.entries[i]))
      return fmt::format("entry {}", i);
  const auto same_group = [](const GroupConfig& x, const GroupConfig& y) {
    return x.name == y.name && x.description == y.description &&
           x.members == y.members;
  };
  const auto same_status = [](const GroupStatus& x, const GroupStatus& y) {
    return x.local_group == y.local_group &&
           x.last_enqueued == y.last_enqueued &&
           x.last_started == y.last_started &&
           x.last_completed == y.last_completed;
  };
  if (!std::ranges::equal(a.groups, b.groups, same_group))
    return "groups";
  if (!std::ranges::equal(a.statuses, b.statuses, same_status))
    return "statuses";
  if (a.version != b.version || a.library != b.library)
    return "versions";
  if (a.extras.size() != b.extras.size() ||
      a.entry_extras.size() != b.entry_extras.size() ||
      a.broken_entries != b.broken_entries || a.imports != b.imports ||
      a.damage.has_value() != b.damage.has_value())
    return "extras";
  return "";
}

}  // namespace postflight
