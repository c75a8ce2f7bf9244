#include "pickle/parts.h"

namespace postflight {
namespace {

Part pair_part(std::span<const Pair> pairs, std::size_t index) {
  const Pair& pair = pairs[index / 2];
  return index % 2 == 0 ? Part{Role::kKey, pair.key}
                        : Part{Role::kValue, pair.value};
}

// An object's parts: callable, arguments (unless kTouched), keywords if any,
// items, pairs, states. Python's pickler writes them in this order.
std::size_t fixed_parts(const Object& object) {
  switch (object.making) {
    case Making::kTouched:
      return 1;
    case Making::kNewEx:
      return 3;
    default:
      return 2;
  }
}

Part object_part(const Object& object, std::size_t index) {
  constexpr Role kFixed[] = {Role::kCallable, Role::kArguments,
                             Role::kKeywords};
  const Value fixed[] = {object.callable, object.arguments, object.keywords()};
  const std::size_t count = fixed_parts(object);
  if (index < count)
    return {kFixed[index], fixed[index]};
  index -= count;
  if (index < object.items().size())
    return {Role::kItem, object.items()[index]};
  index -= object.items().size();
  if (index < object.pairs().size() * 2)
    return pair_part(object.pairs(), index);
  index -= object.pairs().size() * 2;
  return {Role::kState, object.states()[index]};
}

}  // namespace

std::size_t part_count(const Value& value) {
  switch (value.kind()) {
    case Kind::kTuple:
    case Kind::kFrozenSet:
    case Kind::kList:
    case Kind::kSet:
      return value.items().size();
    case Kind::kDict:
      return value.pairs().size() * 2;
    case Kind::kPersistent:
      return 1;
    case Kind::kObject: {
      const Object& object = value.object();
      return fixed_parts(object) + object.items().size() +
             object.pairs().size() * 2 + object.states().size();
    }
    default:
      return 0;
  }
}

Part part_at(const Value& value, std::size_t index) {
  switch (value.kind()) {
    case Kind::kDict:
      return pair_part(value.pairs(), index);
    case Kind::kPersistent:
      return {Role::kPersistentId, value.persistent_id()};
    case Kind::kObject:
      return object_part(value.object(), index);
    default:
      return {Role::kItem, value.items()[index]};
  }
}

}  // namespace postflight
