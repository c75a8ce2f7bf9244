#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/pattern.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// Selects nodes by their printed paths: those that match any of several globs
// or contain a match of any of several regular expressions. Globs are those of
// base/glob.h, except that a bracket around digits, * and ? is the index of a
// list: opt[0].m, opt[*].m. Each key may be given with or without quotes,
// however it is printed (model."a.b", model.a.b); the root is (root). A filter
// without patterns selects everything.
class KeyFilter {
 public:
  KeyFilter() = default;
  static Result<KeyFilter> make(const std::vector<std::string>& globs,
                                const std::vector<std::string>& expressions);

  bool picks_all() const { return globs_.empty() && patterns_.empty(); }
  bool picks(const Checkpoint& checkpoint, std::uint32_t node) const;

 private:
  bool matches(std::string_view path) const;

  std::vector<std::string> globs_;
  std::vector<std::string> quoted_globs_;  // those with quotes, around all keys
  std::vector<Pattern> patterns_;
};

enum class NodeKinds : std::uint8_t { kTensors, kAll };

// The nodes that the filter selects, in the order of the tree. Fails if it has
// patterns and none of them matches.
Result<std::vector<std::uint32_t>> select_nodes(
    const Checkpoint& checkpoint, const KeyFilter& filter,
    NodeKinds kinds = NodeKinds::kTensors);

// The node with this path, with or without quotes, or (root). Fails if there is
// none, or if a path without quotes fits several.
Result<std::uint32_t> find_node(const Checkpoint& checkpoint,
                                std::string_view path);

// The printed path without quotes.
std::string plain_path(const Checkpoint& checkpoint, std::uint32_t node);

}  // namespace postflight
