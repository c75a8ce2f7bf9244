#include "flight/matching/call_signature.h"

#include <array>

#include "flight/model/interner.h"

namespace postflight {

std::vector<std::uint32_t> call_signatures(
    const Job& job, std::span<const Operation> operations) {
  Interner<std::uint32_t> interner;
  std::vector<std::uint32_t> signatures(operations.size());
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    const Call& call = job.tables.call({id});
    std::array<std::uint32_t, 5> key = {
        call.name.value, call.inputs.value, call.outputs.value,
        call.input_dtypes.value, call.output_dtypes.value};
    switch (operations[id].kind) {
      case OperationKind::kAllToAll:
        key[1] = key[2] = 0;
        break;
      case OperationKind::kScatter:
      case OperationKind::kGather:
        key = {call.name.value, 0, 0, 0, 0};
        break;
      default:
        break;
    }
    signatures[id] = interner.intern(key);
  }
  return signatures;
}

Difference difference_between(const Job& job, CallId a, CallId b) {
  const Call& first = job.tables.call(a);
  const Call& second = job.tables.call(b);
  if (first.name != second.name)
    return Difference::kOperation;
  if (job.operation(first).kind != OperationKind::kAllToAll &&
      (first.inputs != second.inputs || first.outputs != second.outputs))
    return Difference::kSizes;
  return Difference::kDtypes;
}

}  // namespace postflight
