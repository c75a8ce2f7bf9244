#include "joblog/reach.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

bool is_transfer(std::string_view type) {
  return type == "SEND" || type.starts_with("RECV") || type == "COALESCED";
}

}  // namespace

std::string recorded_name(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11>
      kNames = {{{"ALLREDUCE", "all_reduce"},
                 {"ALLREDUCE_COALESCED", "allreduce_coalesced"},
                 {"ALLGATHER", "all_gather"},
                 {"_ALLGATHER_BASE", "_all_gather_base"},
                 {"_REDUCE_SCATTER_BASE", "_reduce_scatter_base"},
                 {"REDUCE_SCATTER", "reduce_scatter"},
                 {"ALLTOALL", "all_to_all"},
                 {"ALLTOALL_BASE", "all_to_all"},
                 {"BROADCAST", "broadcast"},
                 {"REDUCE", "reduce"},
                 {"BARRIER", "barrier"}}};
  const auto known = std::ranges::find(
      kNames, type, [](const auto& name) { return name.first; });
  return fmt::format("nccl:{}", known == kNames.end()
                                    ? lowered(type)
                                    : std::string(known->second));
}

bool is_set(const std::optional<std::int64_t>& number) {
  constexpr std::int64_t kUnset = std::int64_t{1} << 40;
  return number && *number >= -1 && *number < kUnset;
}

std::optional<Reach> reach_of(const LogProgress& said) {
  Reach reach;
  if (said.pending) {
    const std::int64_t sequence = said.pending->sequence;
    if (!is_set(sequence))
      return std::nullopt;
    reach.pending = sequence;
    reach.transfer = is_transfer(said.pending->type);
    reach.done = sequence - 1;
    reach.enqueued = sequence;
    if (is_set(said.enqueued) && *said.enqueued >= sequence)
      reach.enqueued = *said.enqueued;
    reach.firm = !is_set(said.completed) || *said.completed == sequence - 1 ||
                 (*said.completed == -1 && sequence == 1);
    // A number that was never set is no contradiction.
    if (said.completed && *said.completed >= sequence)
      reach.firm = !is_set(said.completed) || *said.completed > 1 << 30;
    return reach;
  }
  if (!is_set(said.enqueued) || !is_set(said.completed) ||
      *said.completed > *said.enqueued)
    return std::nullopt;
  reach.done = std::max<std::int64_t>(*said.completed, 0);
  reach.enqueued = std::max<std::int64_t>(*said.enqueued, 0);
  if (reach.done < reach.enqueued)
    reach.pending = reach.done + 1;
  return reach;
}

}  // namespace postflight
