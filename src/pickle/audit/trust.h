#pragma once

#include <string_view>

#include "pickle/names/known_names.h"
#include "pickle/object.h"

namespace postflight {

std::string_view trust_name(Trust trust);

struct Judgement {
  Trust trust = Trust::kUnknown;
  std::string_view reason;  // what it does, for kDangerous; else empty
  Rule rule = Rule::kNone;
  bool shared = false;  // as KnownName's
};

// The judgement on a name whatever it is called with.
Judgement judge(const Global& global);

}  // namespace postflight
