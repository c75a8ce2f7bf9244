#include "checkpoint/inspection.h"

#include <fmt/format.h>

#include "base/units.h"

namespace postflight {
namespace {

// A few bytes can be viewed through any number of overlapping windows.
bool repeats_endlessly(const Checkpoint& checkpoint, const Tensor& tensor) {
  constexpr std::uint64_t kTimesRead = 16;
  constexpr std::uint64_t kSoonRead = 1 << 30;
  if (tensor.elements() == 0)
    return false;
  std::uint64_t bytes = tensor.dtype.size;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.stride[i] != 0)
      bytes *= static_cast<std::uint64_t>(tensor.shape[i]);
  const std::uint64_t stored = checkpoint.storages()[tensor.storage].size;
  return bytes > kSoonRead && bytes / kTimesRead > stored;
}

}  // namespace

Result<Inspection> inspect(const Checkpoint& checkpoint, const Tensor& whole,
                           std::string_view slice) {
  Inspection found;
  if (!slice.empty() && (whole.readable() || whole.in_part))
    found.slice = slice_tensor(whole, TRY(parse_slice(slice, whole.shape)));
  const Tensor& tensor = found.tensor_of(whole);
  if (!tensor.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", tensor.problem);
  found.readable = tensor.readable();
  if (!found.readable)
    found.remark =
        tensor.has_parts() ? "it consists of its parts" : "it has no bytes";
  else if (repeats_endlessly(checkpoint, tensor))
    found.remark = fmt::format("no statistics: its {} are views of far fewer",
                               human_bytes(tensor.bytes()));
  else if (tensor.dtype.numeric != Numeric::kOpaque)
    found.statistics = TRY(statistics_of(TensorReader(checkpoint), tensor));
  return found;
}

}  // namespace postflight
