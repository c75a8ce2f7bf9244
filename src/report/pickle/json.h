#pragma once

#include "json/writer.h"
#include "pickle/value.h"

namespace postflight {

// Writes a value so that it can be read back exactly. What JSON has stays as it
// is; everything else is an object with a key that starts with $, as
// docs/pickle.md lists. Nothing recurses.
void write_pickle_json(const Value& root, JsonWriter& json);

}  // namespace postflight
