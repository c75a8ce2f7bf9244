#include "flight/model/entry_field.h"

#include <array>
#include <utility>

namespace postflight {
namespace {

using enum EntryField;

constexpr std::array<std::pair<std::string_view, EntryField>, 25> kFields{{
    {"frames", kFrames},
    {"record_id", kRecordId},
    {"id", kRecordId},  // before 2.0
    {"pg_id", kLocalGroup},
    {"process_group", kProcessGroup},
    {"pg_name", kProcessGroup},  // before 2.2
    {"thread_name", kThreadName},
    {"thread_id", kThreadId},
    {"collective_seq_id", kSequence},
    {"seq_id", kOldSequence},
    {"p2p_seq_id", kP2pSequence},
    {"op_id", kOperationId},
    {"profiling_name", kName},
    {"time_created_ns", kCreated},
    {"duration_ms", kDuration},
    {"input_sizes", kInputSizes},
    {"input_dtypes", kInputDtypes},
    {"output_sizes", kOutputSizes},
    {"output_dtypes", kOutputDtypes},
    {"state", kState},
    {"time_discovered_started_ns", kStarted},
    {"time_discovered_completed_ns", kCompleted},
    {"retired", kRetired},
    {"timeout_ms", kTimeout},
    {"is_p2p", kPointToPoint},
}};

}  // namespace

EntryField entry_field(std::string_view key) {
  for (const auto& [name, field] : kFields)
    if (name == key)
      return field;
  return kUnknown;
}

}  // namespace postflight
