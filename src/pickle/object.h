#pragma once

#include <cstdint>
#include <string_view>

#include "pickle/value.h"

namespace postflight {

struct Global {
  std::string_view module;
  std::string_view name;
};

// How Python would make an object.
enum class Making : std::uint8_t {
  kReduce,    // callable(*arguments)
  kNew,       // callable.__new__(callable, *arguments)
  kNewEx,     // callable.__new__(callable, *arguments, **keywords)
  kInstance,  // callable(*arguments), by INST or OBJ of protocols 0 and 1
  kTouched,   // no call: state or items were given to `callable` itself
};

// "reduce", "new", "new_ex", "instance", "touched".
std::string_view making_name(Making making);

struct Object {
  Value callable;
  Value arguments;
  Value keywords;       // None unless kNewEx
  Items<Value> states;  // each BUILD's, in order
  Items<Value> items;   // appended or added
  Items<Pair> pairs;    // set by key
  Making making = Making::kReduce;
};

}  // namespace postflight
