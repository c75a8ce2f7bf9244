#include "checkpoint/tensor.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace postflight {
namespace {

// Nothing if the product does not fit, so that nothing wraps later.
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

// The last element any index reaches, from the tensor's first one.
std::optional<std::uint64_t> reach(const Tensor& tensor) {
  std::uint64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto step =
        checked_multiply(static_cast<std::uint64_t>(tensor.shape[i] - 1),
                         static_cast<std::uint64_t>(tensor.stride[i]));
    const auto sum = step ? checked_add(last, *step) : std::nullopt;
    if (!sum)
      return std::nullopt;
    last = *sum;
  }
  return last;
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
      count / dtype.per_byte + (count % dtype.per_byte != 0 ? 1 : 0);
  // Of a tensor without bytes nobody has checked the sizes.
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
    // What overflows is no memory, and so no order of it.
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
  const auto negative = [](std::int64_t number) { return number < 0; };
  if (std::ranges::any_of(tensor.shape, negative) ||
      std::ranges::any_of(tensor.stride, negative))
    return "a size or a stride is negative";
  const auto elements = element_count(tensor.shape);
  const auto bytes =
      elements ? checked_multiply(*elements, std::uint64_t{dtype.size})
               : std::nullopt;
  if (!bytes || *bytes > kLargest)
    return "its sizes multiply to more than 64 bits hold";
  if (*elements == 0 || !dtype.known())
    return "";
  if (dtype.per_byte > 1) {
    if (tensor.offset != 0 || !is_contiguous(tensor))
      return "it is a view of packed elements";
    return tensor.bytes() <= available
               ? ""
               : fmt::format("it needs {} bytes, and its storage has {}",
                             tensor.bytes(), available);
  }
  const auto last = reach(tensor);
  const auto needed =
      last && *last < kLargest
          ? checked_multiply(*last + 1, std::uint64_t{dtype.size})
          : std::nullopt;
  if (!needed || *needed > available)
    return fmt::format("it reaches {}, and its storage has {} bytes",
                       needed ? fmt::format("byte {}", *needed)
                              : std::string("beyond 64 bits"),
                       available);
  return "";
}

}  // namespace postflight
