#pragma once

#include <cstdint>

#include "base/pointer_map.h"
#include "pickle/value.h"

namespace postflight {

// Which containers and objects of a value are referred to more than once, so
// that each can be shown once and referred to after that.
class Sharing {
 public:
  explicit Sharing(const Value& root);

  // Numbers from 1 on in the order in which a walk from the front meets them;
  // 0 if `value` is referred to once or can't be shared.
  std::uint32_t anchor(const Value& value) const;

 private:
  PointerMap anchors_;
};

}  // namespace postflight
