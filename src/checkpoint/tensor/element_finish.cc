#include <algorithm>
#include <cstring>

#include "checkpoint/tensor/strided_copy.h"

namespace postflight {
namespace {

template <class T>
void negate_integers(std::span<std::byte> elements) {
  for (std::size_t i = 0; i + sizeof(T) <= elements.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &elements[i], sizeof(T));
    value = static_cast<T>(T{0} - value);
    std::memcpy(&elements[i], &value, sizeof(T));
  }
}

// The sign is the top bit of a floating-point number's last byte.
void flip_signs(std::span<std::byte> elements, std::size_t first,
                std::size_t step) {
  for (std::size_t i = first; i < elements.size(); i += step)
    elements[i] ^= std::byte{0x80};
}

void negate(const Dtype& dtype, std::span<std::byte> elements) {
  switch (dtype.numeric) {
    case Numeric::kFloat:
    case Numeric::kBfloat16:
      flip_signs(elements, dtype.size - 1, dtype.size);
      return;
    case Numeric::kComplex:
      flip_signs(elements, dtype.size / 2 - 1, dtype.size / 2);
      return;
    case Numeric::kSigned:
    case Numeric::kUnsigned:
      if (dtype.size == 1)
        negate_integers<std::uint8_t>(elements);
      else if (dtype.size == 2)
        negate_integers<std::uint16_t>(elements);
      else if (dtype.size == 4)
        negate_integers<std::uint32_t>(elements);
      else
        negate_integers<std::uint64_t>(elements);
      return;
    default:
      if (is_float8(dtype.numeric))
        flip_signs(elements, 0, 1);
      return;
  }
}

}  // namespace

void finish_elements(const Tensor& tensor, bool big_endian,
                     std::span<std::byte> elements) {
  const Dtype& dtype = tensor.dtype;
  if (big_endian && dtype.swap > 1)
    for (std::size_t i = 0; i + dtype.swap <= elements.size(); i += dtype.swap)
      std::reverse(
          elements.begin() + static_cast<std::ptrdiff_t>(i),
          elements.begin() + static_cast<std::ptrdiff_t>(i + dtype.swap));
  if (tensor.conjugated)
    flip_signs(elements, dtype.size - 1, dtype.size);
  if (tensor.negated)
    negate(dtype, elements);
}

}  // namespace postflight
