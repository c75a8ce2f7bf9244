#include "checkpoint/model/quotes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace postflight {
namespace {

// Two paths are printed alike only if they part at a container where one goes
// on with a dotted key and the other into a container whose key is the front
// of that, or where keys of different kinds have the same text. So most trees
// are checked by looking at each key once, and only below such a container the
// paths are compared, by a hash.
class QuoteMarks {
 public:
  explicit QuoteMarks(Tree& tree)
      : tree_(tree), budget_(kTimesVisited * tree.nodes.size()) {}

  void set() {
    for (std::uint32_t node = 0; node < tree_.nodes.size(); ++node)
      if (tree_.nodes[node].children > 1)
        look_at(node);
  }

 private:
  using Names = std::unordered_set<std::string_view>;
  // Containers nested in each other may each need their paths compared. What
  // would take longer than this gets more quotes than it needs.
  static constexpr std::uint64_t kTimesVisited = 16;
  // As many keys as a printed path has.
  static constexpr int kMostKeys = 128;

  static bool is_dotted(const Key& key) {
    return key.kind == Key::Kind::kString &&
           key.quotes == Key::Quotes::kAsNeeded &&
           key.text.find('.') != key.text.npos;
  }

  template <class Visit>
  void each_child(std::uint32_t container, Visit visit) {
    for (std::uint32_t at = container + 1; at < tree_.nodes[container].end;
         at = tree_.nodes[at].end)
      visit(tree_.nodes[at]);
  }

  void look_at(std::uint32_t container) {
    bool dotted = false;
    bool nested = false;
    bool other = false;
    each_child(container, [&](const Node& node) {
      dotted |= is_dotted(node.key);
      nested |= node.children > 0;
      other |= node.key.kind == Key::Kind::kOther ||
               node.key.kind == Key::Kind::kAttribute;
    });
    if (other)
      quote_like_others(container);
    if (dotted && nested && may_collide(container))
      compare_below(container);
  }

  // A string that reads as the repr of another key, or as an attribute.
  void quote_like_others(std::uint32_t container) {
    Names names;
    each_child(container, [&](const Node& node) {
      if (node.key.kind == Key::Kind::kOther ||
          node.key.kind == Key::Kind::kAttribute)
        names.insert(node.key.text);
    });
    each_child(container, [&](Node& node) {
      if (node.key.kind == Key::Kind::kString && names.contains(node.key.text))
        node.key.quotes = Key::Quotes::kAlways;
    });
  }

  bool may_collide(std::uint32_t container) {
    Names names;
    each_child(container, [&](const Node& node) {
      if (node.children > 0)
        names.insert(node.key.text);
    });
    bool found = false;
    each_child(container, [&](const Node& node) {
      if (!is_dotted(node.key))
        return;
      const std::string_view text = node.key.text;
      for (std::size_t dot = text.find('.'); dot != text.npos && !found;
           dot = text.find('.', dot + 1))
        found = names.contains(text.substr(0, dot));
    });
    return found;
  }

  void compare_below(std::uint32_t container) {
    const std::uint32_t begin = container + 1;
    const std::uint32_t end = tree_.nodes[container].end;
    if (budget_ < end - begin) {
      each_child(container, [](Node& node) {
        if (is_dotted(node.key))
          node.key.quotes = Key::Quotes::kAlways;
      });
      return;
    }
    budget_ -= end - begin;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> paths;
    paths.reserve(end - begin);
    std::vector<std::uint64_t> hashes(end - begin);
    std::string text;
    for (std::uint32_t at = begin; at < end; ++at) {
      const Node& node = tree_.nodes[at];
      text.assign(1, 'x');  // so that a dot comes before the key
      append_key(node.key, text);
      const std::uint64_t hash = hash_on_text(
          node.parent == container ? kSeed : hashes[node.parent - begin],
          std::string_view(text).substr(1));
      hashes[at - begin] = hash;
      paths.emplace_back(hash, at);
    }
    std::ranges::sort(paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const bool alike =
          (i > 0 && paths[i - 1].first == paths[i].first) ||
          (i + 1 < paths.size() && paths[i + 1].first == paths[i].first);
      if (alike)
        quote(paths[i].second, container);
    }
  }

  // The dotted keys of a path, or else its last one.
  void quote(std::uint32_t node, std::uint32_t container) {
    bool dotted = false;
    std::uint32_t at = node;
    for (int i = 0; at != container && i < kMostKeys; ++i) {
      Key& key = tree_.nodes[at].key;
      if (is_dotted(key) || (key.quotes == Key::Quotes::kAlways && at != node))
        dotted = true;
      if (is_dotted(key))
        key.quotes = Key::Quotes::kAlways;
      at = tree_.nodes[at].parent;
    }
    Key& last = tree_.nodes[node].key;
    if (!dotted && last.kind == Key::Kind::kString)
      last.quotes = Key::Quotes::kAlways;
  }

  // FNV-1a, so that "a" and then ".b" are hashed as "a.b" is.
  static constexpr std::uint64_t kSeed = 0xcbf29ce484222325u;
  static std::uint64_t hash_on_text(std::uint64_t hash, std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
  }

  Tree& tree_;
  std::uint64_t budget_;
};

}  // namespace

void set_quotes(Tree& tree) {
  QuoteMarks(tree).set();
}

}  // namespace postflight
