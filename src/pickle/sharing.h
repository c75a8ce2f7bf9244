#pragma once

#include <cstdint>
#include <string_view>

#include "base/pointer_map.h"
#include "pickle/value.h"

namespace postflight {

// Which parts of a value are referenced more than once, so that each is printed
// once and then referred to by an anchor: containers and objects, where sharing
// matters in Python, and large text, which a hostile pickle could otherwise
// make us repeat a million times at two bytes each.
class Sharing {
 public:
  explicit Sharing(const Value& root);

  // Numbers from 1 in order of first appearance; 0 if `value` is referenced
  // once or cannot be shared.
  std::uint32_t anchor(const Value& value) const;
  // The same for the module or name of a global.
  std::uint32_t anchor(std::string_view name) const;

 private:
  PointerMap anchors_;
};

}  // namespace postflight
