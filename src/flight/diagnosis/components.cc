// Tarjan's algorithm, without recursion.
#include "flight/diagnosis/components.h"

#include <algorithm>
#include <limits>

namespace postflight {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Components::Components(const std::vector<std::vector<std::uint32_t>>& edges)
    : index_(edges.size(), kNone),
      low_(edges.size(), 0),
      on_stack_(edges.size(), 0),
      component_(edges.size(), kNone) {
  for (std::uint32_t node = 0; node < edges.size(); ++node)
    if (index_[node] == kNone)
      visit(node, edges);
}

void Components::enter(std::uint32_t node) {
  index_[node] = low_[node] = next_++;
  stack_.push_back(node);
  on_stack_[node] = 1;
  path_.emplace_back(node, 0);
}

void Components::visit(std::uint32_t start,
                       const std::vector<std::vector<std::uint32_t>>& edges) {
  enter(start);
  while (!path_.empty()) {
    auto& [node, edge] = path_.back();
    if (edge < edges[node].size()) {
      const std::uint32_t to = edges[node][edge++];
      if (index_[to] == kNone)
        enter(to);  // moves path_: node and edge are not used again
      else if (on_stack_[to])
        low_[node] = std::min(low_[node], index_[to]);
      continue;
    }
    const std::uint32_t left = node;
    path_.pop_back();
    if (!path_.empty())
      low_[path_.back().first] = std::min(low_[path_.back().first], low_[left]);
    if (low_[left] == index_[left])
      close(left);
  }
}

void Components::close(std::uint32_t root) {
  std::uint32_t node;
  do {
    node = stack_.back();
    stack_.pop_back();
    on_stack_[node] = 0;
    component_[node] = count_;
  } while (node != root);
  ++count_;
}

}  // namespace postflight
