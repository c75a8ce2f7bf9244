#include "flight/model/operation.h"

#include <array>
#include <charconv>
#include <utility>

namespace postflight {
namespace {

using enum OperationKind;

// The names that torch's backends record.
constexpr std::array<std::pair<std::string_view, OperationKind>, 41> kKinds{{
    {"broadcast", kBroadcast},
    {"_broadcast_oop", kBroadcast},
    {"broadcast_oop", kBroadcast},
    {"reduce", kReduce},
    {"_reduce_oop", kReduce},
    {"reduce_oop", kReduce},
    {"all_reduce", kAllReduce},
    {"allreduce", kAllReduce},
    {"all_reduce_sparse", kAllReduce},
    {"allreduce_coalesced", kAllReduce},
    {"all_reduce_coalesced", kAllReduce},
    {"all_gather", kAllGather},
    {"allgather", kAllGather},
    {"_all_gather_base", kAllGather},
    {"_allgather_base", kAllGather},
    {"all_gather_single", kAllGather},
    {"all_gather_into_tensor", kAllGather},
    {"all_gather_into_tensor_coalesced", kAllGather},
    {"ALLGATHER_coalesced", kAllGather},
    {"allgather_coalesced", kAllGather},
    {"reduce_scatter", kReduceScatter},
    {"_reduce_scatter_base", kReduceScatter},
    {"reduce_scatter_single", kReduceScatter},
    {"reduce_scatter_tensor", kReduceScatter},
    {"reduce_scatter_tensor_coalesced", kReduceScatter},
    {"REDUCE_SCATTER_coalesced", kReduceScatter},
    {"reduce_scatter_coalesced", kReduceScatter},
    {"gather", kGather},
    {"scatter", kScatter},
    {"all_to_all", kAllToAll},
    {"alltoall", kAllToAll},
    {"all_to_all_single", kAllToAll},
    {"alltoall_base", kAllToAll},
    {"all_to_all_v_single", kAllToAll},
    {"barrier", kBarrier},
    {"all_reduce_barrier", kBarrier},
    {"monitored_barrier", kBarrier},
    {"send", kSend},
    {"recv", kReceive},
    {"coalesced", kCoalesced},
    {"recvAnysource", kReceive},
}};

OperationKind kind_of(std::string_view name) {
  for (const auto& [known, kind] : kKinds)
    if (known == name)
      return kind;
  return kOther;
}

std::int32_t rank_or_none(std::string_view text) {
  std::int32_t value = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0
             ? value
             : -1;
}

// "0->1" for a send, "1<-0" for a receive.
void read_peers(std::string_view peers, Operation& operation) {
  if (const std::size_t at = peers.find("->"); at != peers.npos) {
    operation.source = rank_or_none(peers.substr(0, at));
    operation.destination = rank_or_none(peers.substr(at + 2));
  } else if (const std::size_t back = peers.find("<-"); back != peers.npos) {
    operation.destination = rank_or_none(peers.substr(0, back));
    operation.source = rank_or_none(peers.substr(back + 2));
  }
}

}  // namespace

Operation parse_operation(std::string_view profiling_name) {
  Operation operation;
  std::string_view rest = profiling_name;
  if (const std::size_t colon = rest.find(':'); colon != rest.npos) {
    operation.backend = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  const std::size_t space = rest.find(' ');
  operation.name = rest.substr(0, space);
  operation.kind = kind_of(operation.name);
  if (operation.point_to_point() && space != rest.npos)
    read_peers(rest.substr(space + 1), operation);
  return operation;
}

}  // namespace postflight
