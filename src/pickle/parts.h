#pragma once

#include <cstddef>
#include <cstdint>

#include "pickle/object.h"

namespace postflight {

// What a value is to its parent.
enum class Role : std::uint8_t {
  kItem,  // of a list, tuple or set; or appended to an object
  kKey,   // of a dict; or set on an object
  kValue,
  kCallable,
  kArguments,
  kKeywords,
  kState,
  kPersistentId,
};

struct Part {
  Role role{};
  Value value;
};

// The children of `value`, by index, so that a traversal can keep its place
// without recursion and without copying them.
std::size_t part_count(const Value& value);
Part part_at(const Value& value, std::size_t index);

}  // namespace postflight
