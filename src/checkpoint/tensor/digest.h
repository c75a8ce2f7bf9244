#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"

namespace postflight {

// The SHA-256 of a tensor's true bytes in row-major order.
Result<std::string> digest_tensor(const TensorReader& reader,
                                  const Tensor& tensor);

// Of the tensors at `nodes`, in order, on several threads. Tensors that are the
// same view of the same storage are read once. All together may come to so many
// bytes as the files could really have, or Limits::max_materialised_bytes: a
// tensor that repeats a byte a trillion times is refused.
using DigestSink =
    std::function<void(std::uint32_t node, const Result<std::string>& digest)>;
Result<> digest_tensors(const Checkpoint& checkpoint,
                        std::span<const std::uint32_t> nodes,
                        const DigestSink& sink);

}  // namespace postflight
