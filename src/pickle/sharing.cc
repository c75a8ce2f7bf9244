#include "pickle/sharing.h"

#include <vector>

#include "pickle/object.h"
#include "pickle/parts.h"

namespace postflight {
namespace {

struct Place {
  Value value;
  std::size_t next = 0;
};

// How often a value was met, as far as it matters.
constexpr std::uint32_t kSeen = 1;
constexpr std::uint32_t kShared = 2;

// Long text counts: a hostile pickle refers to half its bytes in two.
constexpr std::size_t kLongText = 256;

bool can_be_shared(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kLegacyString:
    case Kind::kBytes:
    case Kind::kBigInteger:
      return value.text().size() > kLongText;
    case Kind::kGlobal:
      return value.global().module.size() + value.global().name.size() >
             kLongText;
    default:
      return value.identity() != nullptr;
  }
}

// Calls `meet` for every value of the graph each time it is referred to; walks
// into it if `meet` says so.
template <class Meet>
void walk(const Value& root, Meet meet) {
  std::vector<Place> path;
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

}  // namespace

Sharing::Sharing(const Value& root) {
  PointerMap seen;
  std::uint32_t shared = 0;
  walk(root, [&](const Value& value) {
    if (!can_be_shared(value))
      return false;
    std::uint32_t& state = seen[value.identity()];
    if (state == kSeen) {
      state = kShared;
      ++shared;
    }
    if (state != 0)
      return false;
    state = kSeen;
    return true;
  });
  if (shared == 0)
    return;

  std::uint32_t next = 1;
  PointerMap walked;
  walk(root, [&](const Value& value) {
    if (!can_be_shared(value))
      return false;
    if (seen.find(value.identity()) == kShared) {
      std::uint32_t& anchor = anchors_[value.identity()];
      if (anchor == 0)
        anchor = next++;
    }
    std::uint32_t& done = walked[value.identity()];
    return done++ == 0;
  });
}

std::uint32_t Sharing::anchor(const Value& value) const {
  const void* const identity = value.identity();
  return identity == nullptr ? 0 : anchors_.find(identity);
}

}  // namespace postflight
