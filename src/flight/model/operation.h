#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

// The kind of an operation by its name, whatever the backend.
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
  kOther,      // an unknown collective
};

// The parts of a recorded profiling_name such as "nccl:send 0->1".
struct Operation {
  std::string_view backend;  // "nccl"; empty if the name has none
  std::string_view name;     // "send"
  OperationKind kind = OperationKind::kOther;
  // Ranks within the group, for send and recv; -1 if not recorded.
  std::int32_t source = -1;
  std::int32_t destination = -1;

  // Whether no rank can complete it before all have joined. A broadcast, for
  // example, can complete on its root.
  bool needs_all() const {
    using enum OperationKind;
    return kind == kAllReduce || kind == kAllGather || kind == kReduceScatter ||
           kind == kBarrier || kind == kAllToAll;
  }
  // Whether a rank may be done with it before all others have joined.
  bool may_end_early() const {
    using enum OperationKind;
    return kind == kBroadcast || kind == kReduce || kind == kGather ||
           kind == kScatter;
  }
  bool point_to_point() const {
    return kind == OperationKind::kSend || kind == OperationKind::kReceive;
  }
};

// The result has views into `profiling_name`.
Operation parse_operation(std::string_view profiling_name);

}  // namespace postflight
