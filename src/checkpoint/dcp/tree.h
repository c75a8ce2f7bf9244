#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/hash_index.h"
#include "checkpoint/dcp/metadata.h"
#include "checkpoint/model/tree.h"

namespace postflight {

// The nesting that a state dict had before torch flattened it, as the planner
// recorded it. Other entries are at the top.
class DcpTree {
 public:
  // `entries` outlive it.
  explicit DcpTree(std::span<const DcpEntry> entries);

  // Adds the containers to `tree`, and calls `write_leaf` for the leaves.
  using WriteLeaf = std::function<void(const DcpEntry& entry,
                                       std::uint32_t parent, const Key& key)>;
  void write(Tree& tree, std::uint32_t parent, const Key& key,
             const WriteLeaf& write_leaf) const;

 private:
  struct Branch {
    Key key = {};
    const DcpEntry* entry = nullptr;  // of a leaf
    std::uint32_t parent = 0;
    std::uint32_t first_child = 0;  // 0: none
    std::uint32_t last_child = 0;
    std::uint32_t next = 0;  // of the same parent
    std::uint32_t children = 0;
    bool flat = false;  // the planner recorded no path
  };

  bool insert(const DcpEntry& entry);
  void insert_flat(const DcpEntry& entry);
  std::uint32_t add(std::uint32_t parent, const Key& key);
  std::uint32_t child(std::uint32_t parent, const Key& key);
  bool is_list(const Branch& branch) const;
  // Puts items of lists in their order: entries are in any.
  void order_items();

  std::vector<Branch> branches_;  // the root first
  HashIndex known_;  // by parent and key, but for the first few children
  // Of the previous entry: its path, and the branches on it.
  std::span<const Value> path_;
  std::vector<std::uint32_t> trail_;
};

}  // namespace postflight
