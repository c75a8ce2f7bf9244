#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "pickle/builder.h"
#include "pickle/value.h"

namespace postflight {

// JSON as the same values that a pickle gives: objects are dicts with all their
// pairs, also those whose key was there before.
struct JsonValue {
  // Where there is damage: what was whole before it, or nothing.
  std::optional<Value> root;
  std::optional<Error> damage;
};

struct JsonOptions {
  Limits limits = {};
  // One copy of each text, where most come again and again.
  bool share_texts = false;
};

// The values are valid while `builder` lives.
JsonValue read_json_value(std::string_view text, Builder& builder,
                          const JsonOptions& options = {});

// The same, all or nothing.
Result<Value> parse_json(Bytes text, Builder& builder,
                         const JsonOptions& options = {});

}  // namespace postflight
