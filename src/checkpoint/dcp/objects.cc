#include "checkpoint/dcp/objects.h"

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

bool DcpSizes::learn(const Value& value) {
  const Value callable = value.object().callable;
  if (!callable.is(Kind::kGlobal) || callable.global().name != "Size")
    return false;
  size_class_ = callable.bits();
  return true;
}

bool DcpSizes::read(const Value* value, DcpNumbers& to) {
  if (value == nullptr)
    return false;
  Value items = *value;
  if (is_size(items)) {
    const Value arguments = items.object().arguments;
    if (!is_sequence(arguments))
      return false;
    if (arguments.items().empty()) {
      to = {};
      return true;
    }
    items = arguments.items().front();
  }
  if (!is_sequence(items))
    return false;
  const std::span<const Value> from = items.items();
  auto* const sizes = arena_.allocate<std::int64_t>(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is(Kind::kInteger) || from[i].integer() < 0)
      return false;
    sizes[i] = from[i].integer();
  }
  to = {sizes, from.size()};
  return true;
}

}  // namespace postflight
