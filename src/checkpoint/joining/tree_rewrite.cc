#include "checkpoint/joining/tree_rewrite.h"

#include <utility>

namespace postflight {

TreeRewrite::TreeRewrite(Tree& tree)
    : tree_(tree), old_(std::exchange(tree.nodes, {})) {}

// References lead to a node before them, never to another reference.
std::uint32_t TreeRewrite::resolved(std::uint32_t node) const {
  return old_[node].kind == NodeKind::kReference ? old_[node].index : node;
}

std::uint32_t TreeRewrite::child(std::uint32_t node,
                                 std::string_view name) const {
  for (const std::uint32_t at : children(node))
    if (!old_[at].key.is_number() && old_[at].key.text == name)
      return at;
  return kNoIndex;
}

std::uint32_t TreeRewrite::child(std::uint32_t node,
                                 std::int64_t number) const {
  for (const std::uint32_t at : children(node))
    if (old_[at].key.is_number() && old_[at].key.number == number)
      return at;
  return kNoIndex;
}

std::vector<std::uint32_t> TreeRewrite::children(std::uint32_t node) const {
  std::vector<std::uint32_t> all;
  if (node == kNoIndex)
    return all;
  node = resolved(node);
  for (std::uint32_t at = node + 1; at < old_[node].end; at = old_[at].end)
    all.push_back(at);
  return all;
}

const Tensor* TreeRewrite::tensor_at(std::uint32_t node) const {
  return node != kNoIndex && old_[node].kind == NodeKind::kTensor
             ? &tree_.tensors[old_[node].index]
             : nullptr;
}

std::optional<std::int64_t> TreeRewrite::integer(std::uint32_t node) const {
  if (node == kNoIndex || !old_[node].value.is(Kind::kInteger))
    return std::nullopt;
  return old_[node].value.integer();
}

std::optional<std::vector<std::int64_t>> TreeRewrite::numbers(
    std::uint32_t node) const {
  if (node == kNoIndex)
    return std::nullopt;
  const NodeKind kind = old_[resolved(node)].kind;
  if (kind != NodeKind::kList && kind != NodeKind::kTuple)
    return std::nullopt;
  std::vector<std::int64_t> all;
  for (const std::uint32_t at : children(node)) {
    const std::optional<std::int64_t> number = integer(at);
    if (!number)
      return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

void TreeRewrite::copy(std::uint32_t node, const Key& key,
                       std::uint32_t parent) {
  const auto begin = static_cast<std::uint32_t>(tree_.nodes.size());
  const std::uint32_t end = old_[node].end;
  for (std::uint32_t at = node; at < end; ++at) {
    const Node& from = old_[at];
    const std::uint32_t made =
        tree_.add(at == node ? parent : from.parent - node + begin,
                  at == node ? key : from.key, from.kind);
    Node& to = tree_.nodes[made];
    to.type = from.type;
    to.value = from.value;
    to.index = from.index;
    to.end = from.end - node + begin;
    if (from.kind != NodeKind::kReference)
      continue;
    // To something inside the copy, or else just a value.
    if (from.index >= node && from.index < end)
      to.index = from.index - node + begin;
    else
      to.kind = NodeKind::kValue;
  }
}

std::string_view TreeRewrite::name_below(std::uint32_t parent, const Key& key) {
  constexpr std::size_t kMostKeys = 128;
  std::vector<Key> keys = {key};
  for (; parent != 0 && keys.size() < kMostKeys;
       parent = tree_.nodes[parent].parent)
    keys.push_back(tree_.nodes[parent].key);
  std::string text;
  for (std::size_t i = keys.size(); i-- > 0;)
    append_key(keys[i], text);
  return tree_.keep(text);
}

}  // namespace postflight
