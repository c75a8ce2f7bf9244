#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"

namespace postflight {

// The SHA-256 of a tensor's true bytes in row-major order.
Result<std::string> digest_tensor(const TensorReader& reader,
                                  const Tensor& tensor);

// That, and the digests of its blocks (BlockTree).
struct TensorDigest {
  std::string sha256;
  std::vector<std::string> blocks;
};
Result<TensorDigest> digest_blocks(const TensorReader& reader,
                                   const Tensor& tensor);

// Digests the tensors at `nodes` on several threads and passes them on in that
// order. Tensors that are the same view of the same storage are read once. What
// exceeds the ReadBudget is refused.
using DigestSink =
    std::function<void(std::uint32_t node, const Result<std::string>& digest)>;
Result<> digest_tensors(const Checkpoint& checkpoint,
                        std::span<const std::uint32_t> nodes,
                        const DigestSink& sink,
                        const ReadOptions& options = {});

// The same with the digests of blocks.
using BlockDigestSink =
    std::function<void(std::uint32_t node, const Result<TensorDigest>& digest)>;
Result<> digest_tensors_by_block(const Checkpoint& checkpoint,
                                 std::span<const std::uint32_t> nodes,
                                 const BlockDigestSink& sink,
                                 const ReadOptions& options = {});

}  // namespace postflight
