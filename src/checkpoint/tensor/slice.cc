#include "checkpoint/tensor/slice.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ascii.h"

namespace postflight {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(trimmed(text.substr(0, end), " "));
    if (end == text.npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::optional<std::int64_t>> number(std::string_view text) {
  if (text.empty())
    return std::optional<std::int64_t>();
  std::int64_t value = 0;
  const std::string_view digits =
      text.starts_with('+') && text.size() > 1 && is_digit(text[1])
          ? text.substr(1)
          : text;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    return fail(ErrorKind::kUsage, "'{}' in a slice is not a number", text);
  return std::optional(value);
}

Result<SliceRange> parse_range(std::string_view text, std::int64_t size,
                               std::size_t dimension) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3)
    return fail(ErrorKind::kUsage, "'{}' in a slice has too many colons", text);
  if (parts.size() == 1) {
    const auto index = TRY(number(parts[0]));
    if (!index)
      return fail(ErrorKind::kUsage, "a slice has nothing for dimension {}",
                  dimension);
    const std::int64_t at = *index < 0 ? *index + size : *index;
    if (at < 0 || at >= size)
      return fail(ErrorKind::kUsage,
                  "index {} is outside dimension {}, which has {}", *index,
                  dimension, size);
    return SliceRange{static_cast<std::uint64_t>(at), 1, 1, true};
  }
  const auto first = TRY(number(parts[0]));
  const auto last = TRY(number(parts[1]));
  const auto step =
      parts.size() == 3 ? TRY(number(parts[2])) : std::optional<std::int64_t>();
  if (step && *step <= 0)
    return fail(ErrorKind::kUsage, "a slice's step must be positive, not {}",
                *step);
  const auto clamp = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t from = clamp(first.value_or(0));
  const std::int64_t to = last ? clamp(*last) : size;
  const auto by = static_cast<std::uint64_t>(step.value_or(1));
  const std::uint64_t length =
      to > from ? static_cast<std::uint64_t>(to - from) : 0;
  return SliceRange{static_cast<std::uint64_t>(from),
                    length == 0 ? 0 : (length - 1) / by + 1, by, false};
}

SliceRange whole(std::int64_t size) {
  return {0, static_cast<std::uint64_t>(size), 1, false};
}

}  // namespace

Result<std::vector<SliceRange>> parse_slice(
    std::string_view text, std::span<const std::int64_t> shape) {
  std::string_view inner = trimmed(text, " ");
  if (inner.starts_with('[') && inner.ends_with(']'))
    inner = inner.substr(1, inner.size() - 2);
  std::vector<std::string_view> parts = split(inner, ',');
  if (parts.size() == 1 && parts[0].empty())
    parts.clear();
  if (parts.size() > 1 && parts.back().empty())  // [0,] as in Python
    parts.pop_back();
  const auto ellipses = std::ranges::count(parts, "...");
  if (ellipses > 1)
    return fail(ErrorKind::kUsage, "the slice {} has two ellipses", text);
  const bool open = ellipses == 1;
  if (parts.size() - (open ? 1 : 0) > shape.size())
    return fail(ErrorKind::kUsage,
                "the slice {} has more dimensions than the tensor, which has "
                "{}",
                text, shape.size());
  std::vector<SliceRange> ranges;
  const std::size_t skipped = shape.size() - (parts.size() - (open ? 1 : 0));
  for (const std::string_view part : parts) {
    if (part == "...") {
      for (std::size_t i = 0; i < skipped && ranges.size() < shape.size(); ++i)
        ranges.push_back(whole(shape[ranges.size()]));
      continue;
    }
    ranges.push_back(
        TRY(parse_range(part, shape[ranges.size()], ranges.size())));
  }
  while (ranges.size() < shape.size())
    ranges.push_back(whole(shape[ranges.size()]));
  return ranges;
}

TensorSlice slice_tensor(const Tensor& tensor,
                         std::span<const SliceRange> ranges) {
  TensorSlice slice;
  slice.tensor = tensor;
  if (tensor.in_part)
    slice.tensor.problem = {};
  // Packed elements share bytes.
  const bool all = std::ranges::equal(
      ranges, tensor.shape, [](const SliceRange& range, std::int64_t size) {
        return !range.drop && range.step == 1 &&
               range.count == static_cast<std::uint64_t>(size);
      });
  if (tensor.dtype.packed > 1 && !all && slice.tensor.problem.empty())
    slice.tensor.problem =
        "its elements are packed, so only the whole tensor can be read";
  slice.tensor.is_slice = tensor.is_slice || !all;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const SliceRange& range = ranges[i];
    const auto stride = static_cast<std::uint64_t>(tensor.stride[i]);
    // In bounds, as those of the tensor were checked, unless it is empty.
    if (range.count > 0)
      slice.tensor.offset += range.start * stride;
    if (range.drop)
      continue;
    slice.shape.push_back(static_cast<std::int64_t>(range.count));
    slice.stride.push_back(range.count > 1
                               ? static_cast<std::int64_t>(range.step * stride)
                               : tensor.stride[i]);
  }
  slice.tensor.shape = slice.shape;
  slice.tensor.stride = slice.stride;
  return slice;
}

}  // namespace postflight
