#include "pickle/sharing.h"

#include <deque>
#include <vector>

#include "pickle/object.h"
#include "pickle/parts.h"

namespace postflight {
namespace {

// Text is shared if it is long, or of medium length and referenced so often
// that it adds up.
constexpr std::size_t kShortText = 64;
constexpr std::size_t kLongText = 256;
constexpr std::uint64_t kMuchText = 64 << 10;

bool is_scalar_text(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kLegacyString:
    case Kind::kBytes:
    case Kind::kBigInteger:
      return true;
    default:
      return false;
  }
}

enum class Mark : std::uint8_t { kNone, kSeen, kShared, kNumbered };

// The mark of every container of a value, in 8 bytes per slot: a hostile pickle
// can make a container out of every byte.
class Marks {
 public:
  Mark find(const void* key) const { return mark_of(slots_[position(key)]); }

  void set(const void* key, Mark mark) {
    if ((size_ + 1) * 4 > slots_.size() * 3)
      grow();
    std::uint64_t& slot = slots_[position(key)];
    size_ += slot == 0;
    slot = address(key) | static_cast<std::uint64_t>(mark) << kAddressBits;
  }

 private:
  static constexpr int kAddressBits = 56;

  static std::uint64_t address(const void* key) {
    return reinterpret_cast<std::uintptr_t>(key);
  }
  static std::uint64_t address(std::uint64_t slot) {
    return slot & ((std::uint64_t{1} << kAddressBits) - 1);
  }
  static Mark mark_of(std::uint64_t slot) {
    return static_cast<Mark>(slot >> kAddressBits);
  }

  std::size_t position(const void* key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = PointerMap::hash(key) & mask;
    while (slots_[at] != 0 && address(slots_[at]) != address(key))
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<std::uint64_t> old(slots_.size() * 2);
    old.swap(slots_);
    for (const std::uint64_t slot : old)
      if (slot != 0)
        slots_[position(reinterpret_cast<const void*>(address(slot)))] = slot;
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(64);
  std::size_t size_ = 0;
};

struct Place {
  Value value;
  std::size_t next = 0;
};

// Calls `meet` for every reference to a value in the graph; descends into it if
// `meet` returns true.
template <class Meet>
void walk(const Value& root, Meet meet) {
  std::deque<Place> path;  // growing a vector takes three times the memory
  if (meet(root))
    path.push_back({root});
  while (!path.empty()) {
    Place& place = path.back();
    if (place.next == part_count(place.value)) {
      path.pop_back();
      continue;
    }
    const Value part = part_at(place.value, place.next++).value;
    if (meet(part))
      path.push_back({part});
  }
}

// Calls `meet` for each text of a value that is not one of its parts.
template <class Meet>
void for_each_text(const Value& value, Meet meet) {
  if (value.is(Kind::kGlobal)) {
    meet(value.global().module);
    meet(value.global().name);
  } else if (is_scalar_text(value)) {
    meet(value.text());
  }
}

bool has_text(const Value& value) {
  return value.is(Kind::kGlobal) || is_scalar_text(value);
}

}  // namespace

Sharing::Sharing(const Value& root) {
  Marks marks;
  PointerMap references;  // to texts that are not short
  bool any = false;
  walk(root, [&](const Value& value) {
    if (has_text(value)) {
      for_each_text(value, [&](std::string_view text) {
        if (text.size() > kShortText)
          any |= ++references[text.data()] > 1;
      });
      return false;
    }
    const void* const identity = value.identity();
    if (identity == nullptr)
      return false;
    const Mark mark = marks.find(identity);
    if (mark == Mark::kSeen)
      marks.set(identity, Mark::kShared);
    any |= mark != Mark::kNone;
    if (mark != Mark::kNone)
      return false;
    marks.set(identity, Mark::kSeen);
    return true;
  });
  if (!any)
    return;

  std::uint32_t next = 1;
  walk(root, [&](const Value& value) {
    if (has_text(value)) {
      for_each_text(value, [&](std::string_view text) {
        if (text.size() <= kShortText)
          return;
        const std::uint64_t count = references.find(text.data());
        if (count > 1 &&
            (text.size() > kLongText || text.size() * count > kMuchText)) {
          std::uint32_t& anchor = anchors_[text.data()];
          if (anchor == 0)
            anchor = next++;
        }
      });
      return false;
    }
    const void* const identity = value.identity();
    if (identity == nullptr)
      return false;
    const Mark mark = marks.find(identity);
    if (mark == Mark::kNumbered)
      return false;
    if (mark == Mark::kShared)
      anchors_[identity] = next++;
    marks.set(identity, Mark::kNumbered);
    return true;
  });
}

std::uint32_t Sharing::anchor(const Value& value) const {
  const void* const identity = value.identity();
  return identity == nullptr || value.is(Kind::kGlobal)
             ? 0
             : anchors_.find(identity);
}

std::uint32_t Sharing::anchor(std::string_view name) const {
  return name.size() > kShortText ? anchors_.find(name.data()) : 0;
}

}  // namespace postflight
