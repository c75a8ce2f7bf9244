#include "checkpoint/dcp_tree.h"

#include <cstring>

namespace postflight {
namespace {

Key key_of(const Value& value) {
  return value.is(Kind::kString) ? Key::string(value.text())
                                 : Key::integer(value.integer());
}

std::string lookup_key(std::uint32_t parent, const Key& key) {
  std::string text(sizeof(parent), '\0');
  std::memcpy(text.data(), &parent, sizeof(parent));
  if (key.kind == Key::Kind::kString)
    return text.append("s").append(key.text);
  return text + "i" + std::to_string(key.number);
}

}  // namespace

DcpTree::DcpTree(std::span<const DcpEntry> entries) : branches_(1) {
  branches_.reserve(entries.size() + 1);
  for (const DcpEntry& entry : entries)
    if (entry.path.empty() || !insert(entry))
      insert_flat(entry);
}

std::uint32_t DcpTree::child(std::uint32_t parent, const Key& key) {
  const auto index = static_cast<std::uint32_t>(branches_.size());
  const auto [at, is_new] = known_.emplace(lookup_key(parent, key), index);
  if (is_new) {
    branches_.push_back({.key = key});
    branches_[parent].children.push_back(index);
  }
  return at->second;
}

// False if something else is where it should go.
bool DcpTree::insert(const DcpEntry& entry) {
  std::uint32_t at = 0;
  for (const Value& step : entry.path) {
    if (branches_[at].entry != nullptr)
      return false;
    at = child(at, key_of(step));
  }
  if (branches_[at].entry != nullptr || !branches_[at].children.empty())
    return false;
  branches_[at].entry = &entry;
  return true;
}

// Beside whatever has the same name.
void DcpTree::insert_flat(const DcpEntry& entry) {
  branches_.push_back({.key = Key::string(entry.name), .entry = &entry});
  branches_.front().children.push_back(
      static_cast<std::uint32_t>(branches_.size() - 1));
}

bool DcpTree::is_list(const Branch& branch) const {
  for (std::size_t i = 0; i < branch.children.size(); ++i) {
    const Key& key = branches_[branch.children[i]].key;
    if (key.kind != Key::Kind::kInteger ||
        key.number != static_cast<std::int64_t>(i))
      return false;
  }
  return !branch.children.empty();
}

void DcpTree::write(Tree& tree, std::uint32_t parent, const Key& key,
                    const WriteLeaf& write_leaf) const {
  struct Open {
    const Branch* branch;
    std::uint32_t node;
    bool list;
    std::size_t next = 0;
  };
  std::vector<Open> open;
  open.push_back(
      {&branches_.front(), tree.add(parent, key, NodeKind::kDict), false});
  while (!open.empty()) {
    Open& now = open.back();
    if (now.next == now.branch->children.size()) {
      tree.close(now.node);
      open.pop_back();
      continue;
    }
    const Branch& branch = branches_[now.branch->children[now.next++]];
    const Key step =
        now.list ? Key::index(static_cast<std::uint64_t>(branch.key.number))
                 : branch.key;
    if (branch.entry != nullptr) {
      write_leaf(*branch.entry, now.node, step);
      continue;
    }
    const bool list = is_list(branch);
    const std::uint32_t node =
        tree.add(now.node, step, list ? NodeKind::kList : NodeKind::kDict);
    open.push_back({&branch, node, list});
  }
}

}  // namespace postflight
