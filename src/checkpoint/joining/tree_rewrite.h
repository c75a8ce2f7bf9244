#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/model/tree.h"

namespace postflight {

// The nodes of a tree whose place others take: they are read and copied, while
// the tree is filled anew over the same tensors and values.
class TreeRewrite {
 public:
  explicit TreeRewrite(Tree& tree);

  std::span<const Node> nodes() const { return old_; }

  // What a reference refers to, else the node itself.
  std::uint32_t resolved(std::uint32_t node) const;
  // The child with this text as its key; kNoIndex if there is none, or no node.
  std::uint32_t child(std::uint32_t node, std::string_view name) const;
  std::uint32_t child(std::uint32_t node, std::int64_t number) const;
  std::vector<std::uint32_t> children(std::uint32_t node) const;
  // nullptr if it is not a tensor.
  const Tensor* tensor_at(std::uint32_t node) const;
  std::optional<std::int64_t> integer(std::uint32_t node) const;
  // A list or tuple of integers.
  std::optional<std::vector<std::int64_t>> numbers(std::uint32_t node) const;

  // A node and what is below it, as they are, below `parent` of the new tree.
  void copy(std::uint32_t node, const Key& key, std::uint32_t parent);
  // The path of a new node, before it is added.
  std::string_view name_below(std::uint32_t parent, const Key& key);

 private:
  Tree& tree_;
  std::vector<Node> old_;
};

}  // namespace postflight
