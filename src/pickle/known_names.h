#pragma once

#include <cstdint>
#include <string_view>

#include "pickle/trust.h"

namespace postflight {

// The table of names: what importing and calling each would mean.
struct KnownName {
  Trust trust = Trust::kUnknown;
  Rule rule = Rule::kNone;
  std::string_view effect;  // what a call does, for kDangerous
  // A call may return what others have, too: to change that changes more.
  bool shared = false;
};

// The row for exactly this name, else the row for everything in a module or a
// package; nullptr if there is none.
const KnownName* known_name(std::string_view module, std::string_view name);

// What Python 3 imports instead when a pickle of protocol 2 or lower refers to
// a name of Python 2's library; the same name if it is not renamed.
Global renamed(const Global& global);

}  // namespace postflight
