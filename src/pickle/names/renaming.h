#pragma once

#include "pickle/object.h"

namespace postflight {

// What Python 3 imports instead when a pickle of protocol 2 or lower refers to
// a name of Python 2's library; the same name if it is not renamed.
Global renamed(const Global& global);

}  // namespace postflight
