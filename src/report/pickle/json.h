#pragma once

#include "base/output.h"
#include "pickle/value.h"

namespace postflight {

// A value as JSON from which it can be told back exactly. What JSON has stays
// as it is; everything else is an object with a key that starts with $, as
// docs/pickle.md lists. Nothing recurses.
void write_pickle_json(const Value& root, Output& out);

}  // namespace postflight
