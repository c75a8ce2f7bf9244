#include "checkpoint/tensor/read_budget.h"

#include <algorithm>

#include "checkpoint/model/data_file.h"

namespace postflight {

ReadBudget::ReadBudget(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint),
      left_(checkpoint.limits().max_materialised_bytes) {
  constexpr std::uint64_t kTimesRead = 16;  // views of one storage
  for (const DataFile* const file : checkpoint.files())
    left_ += file->size() * kTimesRead;
}

Result<> ReadBudget::take(const Tensor& tensor) {
  if (!tensor.readable())
    return {};
  const Storage& storage = checkpoint_.storages()[tensor.storage];
  const bool packed = storage.entry != nullptr && storage.entry->method != 0;
  const std::uint64_t cost =
      std::max(tensor.bytes(), packed ? storage.size : 0);
  if (cost > left_)
    return fail(ErrorKind::kRefused,
                "its {} bytes repeat far fewer; all together are more than "
                "allowed (max_materialised_bytes)",
                tensor.bytes());
  left_ -= cost;
  return {};
}

}  // namespace postflight
