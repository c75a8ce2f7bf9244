#include "checkpoint/model/tensor.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace postflight {
namespace {

// Empty if the product overflows.
std::optional<std::uint64_t> element_count(
    std::span<const std::int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end())
    return 0;
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    const auto product =
        checked_multiply(count, static_cast<std::uint64_t>(size));
    if (!product)
      return std::nullopt;
    count = *product;
  }
  return count;
}

constexpr auto kLargest =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

std::uint64_t Tensor::elements() const {
  return element_count(shape).value_or(0);
}

std::uint64_t Tensor::bytes() const {
  const std::uint64_t count = elements();
  const std::uint64_t units =
      count / dtype.packed + (count % dtype.packed != 0 ? 1 : 0);
  // The sizes of a tensor without bytes have not been checked.
  return checked_multiply(units, std::uint64_t{dtype.size})
      .value_or(std::numeric_limits<std::uint64_t>::max());
}

bool is_contiguous(const Tensor& tensor) {
  if (tensor.stride.size() != tensor.shape.size())
    return false;
  std::int64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 0)
      return true;
    if (tensor.shape[i] != 1 && tensor.stride[i] != expected)
      return false;
    // Sizes that overflow are not those of contiguous memory.
    const auto next = checked_multiply(expected, tensor.shape[i]);
    if (!next)
      return false;
    expected = *next;
  }
  return true;
}

std::string check_bounds(const Tensor& tensor, std::uint64_t available) {
  const Dtype& dtype = tensor.dtype;
  if (tensor.shape.size() != tensor.stride.size())
    return fmt::format("it has {} sizes but {} strides", tensor.shape.size(),
                       tensor.stride.size());
  std::uint64_t elements = 1;
  std::uint64_t last = tensor.offset;  // that any index reaches
  bool empty = false;
  bool too_many = false;
  bool too_far = false;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0 || tensor.stride[i] < 0)
      return "a size or a stride is negative";
    const auto size = static_cast<std::uint64_t>(tensor.shape[i]);
    std::uint64_t way = 0;
    empty |= size == 0;
    too_many |= __builtin_mul_overflow(elements, size, &elements);
    too_far |=
        __builtin_mul_overflow(
            size - 1, static_cast<std::uint64_t>(tensor.stride[i]), &way) ||
        __builtin_add_overflow(last, way, &last);
  }
  if (empty)
    return "";
  const auto bytes = checked_multiply(elements, std::uint64_t{dtype.size});
  if (too_many || !bytes || *bytes > kLargest)
    return "the product of its sizes exceeds 64 bits";
  if (!dtype.known())
    return "";
  if (dtype.packed > 1) {
    if (tensor.offset != 0 || !is_contiguous(tensor))
      return "it is a view of packed elements";
    return tensor.bytes() <= available
               ? ""
               : fmt::format("it needs {} bytes, but its storage has {}",
                             tensor.bytes(), available);
  }
  const auto needed =
      !too_far && last < kLargest
          ? checked_multiply(last + 1, std::uint64_t{dtype.size})
          : std::nullopt;
  if (!needed || *needed > available)
    return fmt::format("it reaches {}, but its storage has {} bytes",
                       needed ? fmt::format("byte {}", *needed)
                              : std::string("beyond 64 bits"),
                       available);
  return "";
}

}  // namespace postflight
