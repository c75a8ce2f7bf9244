#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "pickle/object.h"
#include "pickle/value.h"

namespace postflight {

// The objects of a .metadata pickle: there can be millions, of a few classes.

// An attribute of an object that was made from its state; nullptr if it is
// missing or None.
const Value* attribute(const Value& value, std::string_view name);

// Prefetches an object that is needed soon. Machines put its parts right behind
// it, and walking a list of many objects is bound by the latency of memory.
constexpr std::size_t kObjectsAhead = 8;  // measured: how soon is enough
inline void prefetch_object(const Value& value) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLines = 4;
  if (!value.is(Kind::kObject))
    return;
  const char* const at = reinterpret_cast<const char*>(&value.object());
  for (std::size_t i = 0; i < kLines; ++i)
    __builtin_prefetch(at + i * kLine);
}

// The attributes of many objects of one class. Their states mostly have the
// same keys, and as picklers write each text once, those are the same objects
// too: an attribute has the same index as in the object before.
template <std::size_t kCount>
class AttributeLayout {
 public:
  explicit AttributeLayout(const std::array<std::string_view, kCount>& names)
      : names_(names) {}

  std::array<const Value*, kCount> of(const Value& value) {
    std::array<const Value*, kCount> found;
    const std::span<const Pair> pairs = only_state(value);
    if (!knows(pairs))
      learn(value, pairs);
    if (keys_ == 0) {
      for (std::size_t i = 0; i < kCount; ++i)
        found[i] = attribute(value, names_[i]);
      return found;
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      const Value* const there =
          places_[i] == kNowhere ? nullptr : &pairs[places_[i]].value;
      found[i] = there == nullptr || there->is(Kind::kNone) ? nullptr : there;
    }
    return found;
  }

 private:
  static constexpr std::size_t kMostKeys = 8;
  static constexpr std::size_t kNowhere = kMostKeys;

  // The pairs of the state if it is one dict; otherwise empty.
  static std::span<const Pair> only_state(const Value& value) {
    if (!value.is(Kind::kObject))
      return {};
    const Object& object = value.object();
    if (object.state_count != 1 || !object.state.is(Kind::kDict))
      return {};
    return object.state.pairs();
  }

  bool knows(std::span<const Pair> pairs) const {
    if (keys_ == 0 || pairs.size() != keys_)
      return false;
    for (std::size_t i = 0; i < keys_; ++i)
      if (pairs[i].key.bits() != bits_[i])
        return false;
    return true;
  }

  void learn(const Value& value, std::span<const Pair> pairs) {
    keys_ = pairs.size() <= kMostKeys ? pairs.size() : 0;
    for (std::size_t i = 0; i < keys_; ++i)
      bits_[i] = pairs[i].key.bits();
    for (std::size_t i = 0; keys_ != 0 && i < kCount; ++i) {
      const Value* const found = value.object().state.find(names_[i]);
      places_[i] = kNowhere;
      for (std::size_t j = 0; j < keys_; ++j)
        if (found == &pairs[j].value)
          places_[i] = j;
    }
  }

  const std::array<std::string_view, kCount> names_;
  std::size_t keys_ = 0;  // of the known state; 0: none is known
  std::array<std::uint64_t, kMostKeys> bits_ = {};
  std::array<std::size_t, kCount> places_ = {};
};

using DcpNumbers = std::span<const std::int64_t>;

// Reads the many sizes and offsets of a .metadata pickle.
class DcpSizes {
 public:
  explicit DcpSizes(Arena& arena) : arena_(arena) {}

  // Reads torch.Size((2, 3)) or a plain tuple; false if it is neither.
  bool read(const Value* value, DcpNumbers& to);

 private:
  bool is_size(const Value& value) {
    return value.is(Kind::kObject) &&
           (value.object().callable.bits() == size_class_ || learn(value));
  }
  bool learn(const Value& value);

  Arena& arena_;
  std::uint64_t size_class_ = ~std::uint64_t{0};  // the callable that makes one
};

// Whether it is a tuple or a list.
inline bool is_sequence(const Value& value) {
  return value.is(Kind::kTuple) || value.is(Kind::kList);
}

}  // namespace postflight
