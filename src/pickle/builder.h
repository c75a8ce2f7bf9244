#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/arena.h"
#include "pickle/object.h"
#include "pickle/value.h"

namespace postflight {

// Creates values such as a Machine reads from a pickle. Text is copied; what it
// returns is valid as long as the Builder.
//
// Writers identify objects by identity: the same Value used twice is written
// once. Two strings made from the same text are two objects, as they can be in
// Python; interned() returns the same one each time.
class Builder {
 public:
  static Value none() { return Value::none(); }
  static Value boolean(bool value) { return Value::boolean(value); }
  Value integer(std::int64_t value);
  // Little-endian two's complement of any length.
  Value big_integer(std::string_view twos_complement);
  Value floating(double value);
  Value string(std::string_view text);
  Value interned(std::string_view text);
  Value bytes(std::string_view text);
  Value byte_array(std::string_view text);
  Value legacy_string(std::string_view text);

  Value tuple(std::span<const Value> items);
  Value tuple(std::initializer_list<Value> items);
  Value frozen_set(std::span<const Value> items);
  Value frozen_set(std::initializer_list<Value> items);
  Value list(std::span<const Value> items = {});
  Value list(std::initializer_list<Value> items);
  Value set(std::span<const Value> items = {});
  Value set(std::initializer_list<Value> items);
  Value dict(std::span<const Pair> pairs = {});
  Value dict(std::initializer_list<Pair> pairs);

  // Returns the same value each time for the same names.
  Value global(std::string_view module, std::string_view name);
  // callable(*arguments)
  Value reduce(Value callable, Value arguments);
  // type.__new__(type, *arguments), or with **keywords
  Value new_object(Value type, Value arguments);
  Value new_object(Value type, Value arguments, Value keywords);
  Value persistent(Value id);
  // A code of Python's copyreg registry, from 1 on.
  static Value extension(std::uint32_t code) {
    return Value::numbered(Kind::kExtension, code);
  }

  // These modify a value made by a Builder or Machine: a list, set or object;
  // a dict or object; an object.
  void append(Value target, Value item);
  void set_item(Value target, Value key, Value value);
  void set_item(Value target, std::string_view interned_key, Value value) {
    set_item(target, interned(interned_key), value);
  }
  void add_state(Value object, Value state);

 private:
  Value fixed(Kind kind, std::span<const Value> items);
  Value growing(Kind kind, std::span<const Value> items);
  Object::More& more_of(Value object);
  template <class T>
  void extend(Items<T>& items, std::span<const T> more);

  Arena arena_;
  std::unordered_map<std::string_view, Value> interned_;
  std::map<std::pair<std::string_view, std::string_view>, Value> globals_;
};

}  // namespace postflight
