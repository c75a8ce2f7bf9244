#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "pickle/object.h"
#include "pickle/parts.h"
#include "pickle/value.h"

namespace postflight {

// Walks two values side by side and pairs up their objects: they are the same
// graph if their parts are equal and each object of one is paired with one
// object of the other only. Numbers and persistent ids, which no pickle can
// share, are compared by value.
class GraphComparison {
 public:
  bool same(const Value& a, const Value& b) {
    if (!meet(a, b))
      return false;
    while (!places_.empty()) {
      Place& place = places_.back();
      if (place.next == part_count(place.a)) {
        places_.pop_back();
        continue;
      }
      const Part in_a = part_at(place.a, place.next);
      const Part in_b = part_at(place.b, place.next++);
      if (in_a.role != in_b.role || !meet(in_a.value, in_b.value))
        return false;
    }
    return true;
  }

 private:
  struct Place {
    Value a;
    Value b;
    std::size_t next = 0;
  };
  // An empty text may have the address of the object after it.
  using Key = std::pair<const void*, bool>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.first) * 2 + key.second;
    }
  };

  static bool is_text(const Value& value) {
    return value.is(Kind::kString) || value.is(Kind::kLegacyString) ||
           value.is(Kind::kBytes) || value.is(Kind::kByteArray);
  }

  static bool is_shareable(const Value& value) {
    return value.identity() != nullptr && !value.is(Kind::kBigInteger) &&
           !value.is(Kind::kPersistent);
  }

  // Compares all but the parts, which are compared later if these two have not
  // been met before.
  bool meet(const Value& a, const Value& b) {
    if (!looks_same(a, b))
      return false;
    if (is_shareable(a)) {
      const Key in_a(a.identity(), is_text(a));
      const Key in_b(b.identity(), is_text(b));
      const auto [a_to_b, is_new] = to_b_.emplace(in_a, in_b);
      if (a_to_b->second != in_b || to_a_.emplace(in_b, in_a).second != is_new)
        return false;
      if (!is_new)
        return true;
    }
    if (part_count(a) != 0)
      places_.push_back({a, b});
    return true;
  }

  static bool looks_same(const Value& a, const Value& b) {
    if (a.kind() != b.kind() || part_count(a) != part_count(b) ||
        is_shareable(a) != is_shareable(b))
      return false;
    switch (a.kind()) {
      case Kind::kNone:
        return true;
      case Kind::kBoolean:
        return a.boolean() == b.boolean();
      case Kind::kInteger:
      case Kind::kExtension:
      case Kind::kBuffer:
      case Kind::kReadOnlyBuffer:
        return a.integer() == b.integer();
      case Kind::kFloat: {
        const double left = a.floating();
        const double right = b.floating();
        return std::memcmp(&left, &right, sizeof left) == 0;
      }
      case Kind::kGlobal:
        return a.global().module == b.global().module &&
               a.global().name == b.global().name;
      case Kind::kObject:
        return a.object().making == b.object().making &&
               a.object().items().size() == b.object().items().size() &&
               a.object().pairs().size() == b.object().pairs().size();
      default:
        return (!is_text(a) && !a.is(Kind::kBigInteger)) ||
               a.text() == b.text();
    }
  }

  std::vector<Place> places_;
  std::unordered_map<Key, Key, Hash> to_b_;
  std::unordered_map<Key, Key, Hash> to_a_;
};

inline bool same_graph(const Value& a, const Value& b) {
  return GraphComparison().same(a, b);
}

}  // namespace postflight
