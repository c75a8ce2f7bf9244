#include "checkpoint/torch/attribute_layout.h"

#include <algorithm>

namespace postflight {
namespace {

// More than any class of torch has: a dict of a million keys may be the state
// of a million objects.
constexpr std::size_t kMostStates = 8;
constexpr std::size_t kMostAttributes = 64;

}  // namespace

const Value* attribute(const Value& value, std::string_view name) {
  if (!value.is(Kind::kObject))
    return nullptr;
  const std::span<const Value> states = value.object().states();
  const std::size_t count = states.size();
  for (std::size_t i = 0; i < std::min(count, kMostStates); ++i) {
    const Value& state = states[count - 1 - i];
    if (!state.is(Kind::kDict) || state.pairs().size() > kMostAttributes)
      continue;
    const Value* const found = state.find(name);
    if (found != nullptr)
      return found->is(Kind::kNone) ? nullptr : found;
  }
  return nullptr;
}

}  // namespace postflight
