#include "checkpoint/model/tree.h"

#include <algorithm>
#include <cstring>

namespace postflight {

std::string_view Tree::keep(std::string_view text) {
  if (text.empty())
    return {};
  char* const kept = arena.allocate_text(text.size());
  std::memcpy(kept, text.data(), text.size());
  return {kept, text.size()};
}

std::span<const std::int64_t> Tree::keep(
    std::span<const std::int64_t> numbers) {
  std::int64_t* const kept = arena.allocate<std::int64_t>(numbers.size());
  std::ranges::copy(numbers, kept);
  return {kept, numbers.size()};
}

std::uint32_t Tree::add(std::uint32_t parent, const Key& key, NodeKind kind) {
  const auto index = static_cast<std::uint32_t>(nodes.size());
  Node& node = nodes.emplace_back();
  node.kind = kind;
  node.key = key;
  node.parent = index == 0 ? 0 : parent;
  node.end = index + 1;
  if (index != 0)
    ++nodes[parent].children;
  return index;
}

std::uint32_t Tree::add_plain_tensor(const Dtype& dtype,
                                     std::span<const std::int64_t> shape,
                                     std::uint32_t storage) {
  const std::size_t dimensions = shape.size();
  std::int64_t* const lengths = arena.allocate<std::int64_t>(2 * dimensions);
  std::int64_t* const stride = lengths + dimensions;
  std::int64_t step = 1;
  for (std::size_t i = dimensions; i-- > 0;) {
    lengths[i] = shape[i];
    stride[i] = step;
    // check_bounds() refuses what overflows here.
    if (shape[i] > 0)
      step = checked_multiply(step, shape[i]).value_or(1);
  }
  Tensor& tensor = tensors.emplace_back();
  tensor.dtype = dtype;
  tensor.shape = {lengths, dimensions};
  tensor.stride = {stride, dimensions};
  tensor.storage = storage;
  if (storage != kNoIndex) {
    const Storage& from = storages[storage];
    tensor.problem = from.problem.empty()
                         ? keep(check_bounds(tensor, from.size))
                         : from.problem;
  }
  return static_cast<std::uint32_t>(tensors.size() - 1);
}

}  // namespace postflight
