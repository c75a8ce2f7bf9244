#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "checkpoint/model/node.h"
#include "checkpoint/model/tensor.h"

namespace postflight {

// The tree of a checkpoint, and the memory that its views point into.
struct Tree {
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;
  std::vector<Storage> storages;
  Arena arena;

  std::uint64_t memory_bytes() const {
    return nodes.capacity() * sizeof(Node) +
           tensors.capacity() * sizeof(Tensor) +
           storages.capacity() * sizeof(Storage) + arena.reserved_bytes();
  }

  std::string_view keep(std::string_view text);
  std::span<const std::int64_t> keep(std::span<const std::int64_t> numbers);

  // Adds a node below `parent`, which must not have been closed.
  std::uint32_t add(std::uint32_t parent, const Key& key, NodeKind kind);
  void close(std::uint32_t node) {
    nodes[node].end = static_cast<std::uint32_t>(nodes.size());
  }
  // A tensor whose elements are in row-major order from the start of `storage`.
  std::uint32_t add_plain_tensor(const Dtype& dtype,
                                 std::span<const std::int64_t> shape,
                                 std::uint32_t storage);
};

}  // namespace postflight
