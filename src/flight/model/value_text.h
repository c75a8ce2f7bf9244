#pragma once

#include <string>

#include "pickle/value.h"

namespace postflight {

// A value in short as Python would print it; text as it is. Long and deep ones
// are cut with "…". Not yet escaped: it may hold bytes of a file.
std::string value_text(const Value& value);

}  // namespace postflight
