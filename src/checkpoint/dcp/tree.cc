#include "checkpoint/dcp/tree.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace postflight {
namespace {

// A scan of so many is faster than hashing.
constexpr std::uint32_t kFewChildren = 24;

Key key_of(const Value& value) {
  return value.is(Kind::kString) ? Key::string(value.text())
                                 : Key::integer(value.integer());
}

bool same_step(const Value& a, const Value& b) {
  return a.bits() == b.bits() || key_of(a) == key_of(b);
}

std::uint64_t hash_of(std::uint32_t parent, const Key& key) {
  return hash_on(
      hash_on(hash_text(key.text), static_cast<std::uint64_t>(key.number)),
      parent);
}

}  // namespace

DcpTree::DcpTree(std::span<const DcpEntry> entries) : branches_(1) {
  // About two branches per tensor; unused memory is never touched.
  branches_.reserve(entries.size() * 2 + 1);
  for (const DcpEntry& entry : entries)
    if (entry.path.empty() || !insert(entry))
      insert_flat(entry);
  order_items();
}

void DcpTree::order_items() {
  std::vector<std::uint32_t> items;
  for (Branch& branch : branches_) {
    if (branch.first_child == 0 || is_list(branch) ||
        branches_[branch.first_child].key.kind != Key::Kind::kInteger)
      continue;
    items.clear();
    for (std::uint32_t at = branch.first_child; at != 0;
         at = branches_[at].next)
      items.push_back(at);
    std::ranges::stable_sort(items, {}, [this](std::uint32_t item) {
      return branches_[item].key.number;
    });
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Branch& item = branches_[items[i]];
      if (item.key.kind != Key::Kind::kInteger ||
          item.key.number != static_cast<std::int64_t>(i)) {
        items.clear();  // not a list
        break;
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i)
      branches_[items[i]].next = i + 1 < items.size() ? items[i + 1] : 0;
    if (!items.empty()) {
      branch.first_child = items.front();
      branch.last_child = items.back();
    }
  }
}

std::uint32_t DcpTree::add(std::uint32_t parent, const Key& key) {
  const auto index = static_cast<std::uint32_t>(branches_.size());
  branches_.push_back({.key = key, .parent = parent});
  const std::uint32_t before =
      std::exchange(branches_[parent].last_child, index);
  ++branches_[parent].children;
  (before == 0 ? branches_[parent].first_child : branches_[before].next) =
      index;
  return index;
}

std::uint32_t DcpTree::child(std::uint32_t parent, const Key& key) {
  std::uint32_t at = branches_[parent].first_child;
  for (std::uint32_t i = 0; at != 0 && i < kFewChildren; ++i) {
    if (!branches_[at].flat && branches_[at].key == key)
      return at;
    at = branches_[at].next;
  }
  if (branches_[parent].children < kFewChildren)
    return add(parent, key);
  const std::uint64_t hash = hash_of(parent, key);
  const std::uint32_t found = known_.find(hash, [&](std::uint32_t index) {
    return branches_[index].parent == parent && branches_[index].key == key;
  });
  if (found != HashIndex::kNone)
    return found;
  const std::uint32_t index = add(parent, key);
  known_.add(hash, index);
  return index;
}

// False if another entry is in its place.
bool DcpTree::insert(const DcpEntry& entry) {
  // Consecutive entries share most of their path.
  std::size_t common = 0;
  while (common < trail_.size() && common + 1 < entry.path.size() &&
         same_step(entry.path[common], path_[common]))
    ++common;
  trail_.resize(common);
  path_ = entry.path;
  std::uint32_t at = common == 0 ? 0 : trail_.back();
  for (const Value& step : entry.path.subspan(common)) {
    if (branches_[at].entry != nullptr)
      return false;
    at = child(at, key_of(step));
    trail_.push_back(at);
  }
  if (branches_[at].entry != nullptr || branches_[at].first_child != 0)
    return false;
  branches_[at].entry = &entry;
  return true;
}

// Even if another branch has the same name.
void DcpTree::insert_flat(const DcpEntry& entry) {
  Branch& made = branches_[add(0, Key::string(entry.name))];
  made.entry = &entry;
  made.flat = true;
}

bool DcpTree::is_list(const Branch& branch) const {
  std::int64_t count = 0;
  for (std::uint32_t at = branch.first_child; at != 0; at = branches_[at].next)
    if (branches_[at].key.kind != Key::Kind::kInteger ||
        branches_[at].key.number != count++)
      return false;
  return count > 0;
}

void DcpTree::write(Tree& tree, std::uint32_t parent, const Key& key,
                    const WriteLeaf& write_leaf) const {
  struct Open {
    std::uint32_t node;
    bool list;
    std::uint32_t next;  // of its children
  };
  tree.nodes.reserve(tree.nodes.size() + branches_.size());
  std::vector<Open> open;
  const auto enter = [&](const Branch& branch, std::uint32_t node, bool list) {
    open.push_back({node, list, branch.first_child});
  };
  enter(branches_.front(), tree.add(parent, key, NodeKind::kDict), false);
  while (!open.empty()) {
    Open& now = open.back();
    if (now.next == 0) {
      tree.close(now.node);
      open.pop_back();
      continue;
    }
    const Branch& branch = branches_[now.next];
    now.next = branch.next;
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
    enter(branch, node, list);
  }
}

}  // namespace postflight
