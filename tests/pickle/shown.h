#pragma once

#include <string>

#include "pickle/value.h"

namespace postflight {

// A value on one line, close to Python's own notation, for tests to compare in
// full. What is referred to twice stands after &1 and is then *1. A call shows
// how it was made and all that was given to it:
//
//   reduce(<os.system>, ('ls',))
//   new(<m.C>, (), items=[1], pairs={'k': 2}, states=[{'x': 3}])
std::string shown(const Value& root);

}  // namespace postflight
