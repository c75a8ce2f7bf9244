#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "checkpoint/model/dtype.h"

namespace postflight {

// Whether elements of one dtype can be converted to another: between
// floating-point dtypes.
bool can_convert(const Dtype& from, const Dtype& to);

// Converts elements as torch's Tensor.to() does: through float32, to the
// nearest, ties to even. `to` has room for as many elements as `from` has.
void convert_elements(const Dtype& from_dtype, Bytes from,
                      const Dtype& to_dtype, std::span<std::byte> to);

}  // namespace postflight
