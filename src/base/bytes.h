#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace postflight {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Copies all of `from` to the front of `to`, which has room for it. Unlike
// memcpy it takes empty spans, and unlike libstdc++ 12's std::ranges::copy it
// does not go byte by byte.
inline void copy_bytes(Bytes from, std::span<std::byte> to) {
  if (!from.empty())
    std::memcpy(to.data(), from.data(), from.size());
}

// Sums and products of sizes from a file; nullopt on overflow.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> checked_multiply(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

static_assert(std::endian::native == std::endian::little,
              "integers are read by memcpy");

// Unchecked: the caller knows that sizeof(T) bytes are there.
template <std::integral T>
T load_little_endian(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Bytes [offset, offset + size) of `bytes`, or an error that names the missing
// range. `offset` and `size` are untrusted.
Result<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size);

// Reads a byte range front to back with bounds checks. What it returns points
// into the range and is valid as long as those bytes are.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes), size_(bytes.size()) {}

  std::size_t offset() const { return size_ - rest_.size(); }
  std::size_t remaining() const { return rest_.size(); }
  bool at_end() const { return rest_.empty(); }

  Result<Bytes> take(std::uint64_t count) {
    if (count > rest_.size()) [[unlikely]]
      return out_of_bytes(count);
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  Result<> skip(std::uint64_t count) {
    TRY(take(count));
    return {};
  }

  template <std::integral T>
  Result<T> little_endian() {
    const Bytes bytes = TRY(take(sizeof(T)));
    return load_little_endian<T>(bytes.data());
  }

 private:
  tl::unexpected<Error> out_of_bytes(std::uint64_t wanted) const;

  Bytes rest_;
  std::size_t size_;
};

}  // namespace postflight
