#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "pickle/builder.h"
#include "pickle/value.h"

namespace postflight {

// Reads JSON text into values: objects as dicts with all their pairs, also
// those whose key was there before. Valid while `builder` lives.
Result<Value> parse_json(Bytes text, Builder& builder);

}  // namespace postflight
