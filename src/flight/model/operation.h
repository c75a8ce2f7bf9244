#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

// What an operation is by its name, whichever backend ran it.
enum class OperationKind : std::uint8_t {
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kReceive,
  kCoalesced,  // closes a batch
  kOther,      // a collective we know nothing of
};

// A recorded profiling_name taken apart: "nccl:send 0->1".
struct Operation {
  std::string_view backend;  // "nccl"; empty if the name has none
  std::string_view name;     // "send"
  OperationKind kind = OperationKind::kOther;
  // Of send and recv, as ranks inside the group; -1 where they are not told.
  std::int32_t source = -1;
  std::int32_t destination = -1;

  // Whether it can end on no rank before all have joined: a broadcast can, on
  // its root.
  bool needs_all() const {
    using enum OperationKind;
    return kind == kAllReduce || kind == kAllGather || kind == kReduceScatter ||
           kind == kBarrier || kind == kAllToAll;
  }
  bool point_to_point() const {
    return kind == OperationKind::kSend || kind == OperationKind::kReceive;
  }
};

// Keeps views into `profiling_name`.
Operation parse_operation(std::string_view profiling_name);

}  // namespace postflight
