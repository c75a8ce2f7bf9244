#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"
#include "pickle/builder.h"
#include "pickle/value.h"

namespace postflight {

// JSON as the same values that a pickle gives.
struct JsonValue {
  // Where there is damage: what was whole before it, or nothing.
  std::optional<Value> root;
  std::optional<Error> damage;
};

// The values are valid while `builder` lives.
JsonValue read_json_value(std::string_view text, Builder& builder,
                          const Limits& limits);

}  // namespace postflight
