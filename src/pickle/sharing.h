#pragma once

#include <cstdint>
#include <string_view>

#include "base/pointer_map.h"
#include "pickle/value.h"

namespace postflight {

// Which parts of a value are referred to more than once, so that each can be
// shown once and referred to after that: containers and objects, for which it
// makes a difference in Python, and text of such a size that a hostile pickle
// could make us repeat it a million times in two bytes each.
class Sharing {
 public:
  explicit Sharing(const Value& root);

  // Numbers from 1 on in the order in which a walk from the front meets them;
  // 0 if `value` is referred to once or can't be shared.
  std::uint32_t anchor(const Value& value) const;
  // The same for the module or name of a global.
  std::uint32_t anchor(std::string_view name) const;

 private:
  PointerMap anchors_;
};

}  // namespace postflight
