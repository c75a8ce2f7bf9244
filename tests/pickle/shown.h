#pragma once

#include <string>

#include "pickle/value.h"

namespace postflight {

// A value on one line, close to Python's own notation, for tests to compare in
// full. A value that is referenced twice is prefixed by &1 and later shown as
// *1. A call shows how it was made and everything added to it:
//
//   reduce(<os.system>, ('ls',))
//   new(<m.C>, (), items=[1], pairs={'k': 2}, states=[{'x': 3}])
std::string shown(const Value& root);

}  // namespace postflight
