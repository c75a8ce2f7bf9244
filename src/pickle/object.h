#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "pickle/value.h"

namespace postflight {

struct Global {
  std::string_view module;
  std::string_view name;
};

// How Python would create an object.
enum class Making : std::uint8_t {
  kReduce,    // callable(*arguments)
  kNew,       // callable.__new__(callable, *arguments)
  kNewEx,     // callable.__new__(callable, *arguments, **keywords)
  kInstance,  // callable(*arguments), by INST or OBJ of protocols 0 and 1
  kTouched,   // no call: state or items were added to `callable` itself
};

// "reduce", "new", "new_ex", "instance", "touched".
std::string_view making_name(Making making);

struct Object {
  // What few objects have. It is separate because objects come by the million
  // and should be small.
  struct More {
    Value keywords = {};
    Items<Value> items = {};
    Items<Pair> pairs = {};
  };

  Value callable;
  Value arguments;
  Value state;  // a list of states if there are two or more
  More* more = nullptr;
  // Scratch space for a reader: the index of what it made from this object. It
  // must check that entry, as another reader may have set the mark.
  mutable std::uint32_t mark = 0;
  std::uint8_t state_count = 0;  // 2 means two or more
  Making making = Making::kReduce;

  // None unless kNewEx.
  Value keywords() const { return more == nullptr ? Value() : more->keywords; }
  // Each BUILD's, in order.
  std::span<const Value> states() const {
    return state_count < 2 ? std::span(&state, state_count) : state.items();
  }
  // Appended or added.
  std::span<const Value> items() const {
    return more == nullptr ? std::span<const Value>() : more->items.view();
  }
  // Set by key.
  std::span<const Pair> pairs() const {
    return more == nullptr ? std::span<const Pair>() : more->pairs.view();
  }
};

}  // namespace postflight
