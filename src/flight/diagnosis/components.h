#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace postflight {

// The strongly connected components of a graph with nodes 0 to n-1. A component
// has a higher number than those that it leads to.
class Components {
 public:
  // Keeps no reference to the edges.
  explicit Components(const std::vector<std::vector<std::uint32_t>>& edges);

  std::uint32_t count() const { return count_; }
  std::uint32_t of(std::uint32_t node) const { return component_[node]; }

 private:
  void enter(std::uint32_t node);
  void visit(std::uint32_t start,
             const std::vector<std::vector<std::uint32_t>>& edges);
  void close(std::uint32_t root);

  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> low_;
  std::vector<char> on_stack_;
  std::vector<std::uint32_t> component_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::pair<std::uint32_t, std::size_t>> path_;
  std::uint32_t next_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace postflight
