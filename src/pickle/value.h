#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace postflight {

enum class Kind : std::uint8_t {
  kNone,
  kBoolean,
  kInteger,       // fits 64 bits
  kBigInteger,    // text(): two's complement, little-endian, more than 8 bytes
  kFloat,
  kString,        // text(): UTF-8 as written, lone surrogates and errors kept
  kLegacyString,  // text(): Python 2's str, bytes in no stated encoding
  kBytes,
  kByteArray,
  kTuple,
  kFrozenSet,
  kList,
  kSet,
  kDict,
  kGlobal,          // a name that Python would import; here only a name
  kObject,          // a call that Python would make; here only a record of it
  kPersistent,      // an id that the reader of the pickle gives a meaning
  kExtension,       // a code from Python's copyreg registry
  kBuffer,          // the n-th out-of-band buffer
  kReadOnlyBuffer,
};

struct Pair;
struct Global;
struct Object;

// A growing array in an Arena: the items of a list, set or dict.
template <class T>
struct Items {
  T* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  std::span<const T> view() const { return {data, size}; }
};

// One value of a pickle: 16 bytes, copied freely. Text points into the input,
// containers into the arena of the Machine or Builder that made them; both
// must outlive it. Lists, sets, dicts and objects are shared by all copies.
class Value {
 public:
  constexpr Value() : header_(0), integer_(0) {}

  static Value none() { return {}; }
  static Value boolean(bool value) { return {Kind::kBoolean, 0, value}; }
  static Value integer(std::int64_t value) {
    return {Kind::kInteger, 0, value};
  }
  static Value floating(double value) {
    Value made(Kind::kFloat, 0, 0);
    made.floating_ = value;
    return made;
  }
  // kString, kLegacyString, kBytes, kByteArray or kBigInteger.
  static Value text(Kind kind, std::string_view text) {
    Value made(kind, text.size(), 0);
    made.text_ = text.data();
    return made;
  }
  static Value string(std::string_view text) {
    return Value::text(Kind::kString, text);
  }
  // kTuple or kFrozenSet.
  static Value fixed(Kind kind, std::span<const Value> items) {
    Value made(kind, items.size(), 0);
    made.items_ = items.data();
    return made;
  }
  // kList or kSet.
  static Value growing(Kind kind, Items<Value>* items) {
    Value made(kind, 0, 0);
    made.growing_ = items;
    return made;
  }
  static Value dict(Items<Pair>* pairs) {
    Value made(Kind::kDict, 0, 0);
    made.pairs_ = pairs;
    return made;
  }
  static Value global(const Global* global) {
    Value made(Kind::kGlobal, 0, 0);
    made.global_ = global;
    return made;
  }
  static Value object(Object* object) {
    Value made(Kind::kObject, 0, 0);
    made.object_ = object;
    return made;
  }
  static Value persistent(const Value* id) {
    Value made(Kind::kPersistent, 0, 0);
    made.items_ = id;
    return made;
  }
  // kExtension, kBuffer or kReadOnlyBuffer.
  static Value numbered(Kind kind, std::int64_t number) {
    return {kind, 0, number};
  }

  Kind kind() const { return static_cast<Kind>(header_ & 0xff); }
  bool is(Kind kind) const { return this->kind() == kind; }

  // Each accessor is for the kinds named with it only.
  bool boolean() const { return integer_ != 0; }
  std::int64_t integer() const { return integer_; }  // and numbered kinds
  double floating() const { return floating_; }
  std::string_view text() const { return {text_, header_ >> 8}; }
  std::span<const Value> items() const {  // tuple, frozenset, list, set
    return is(Kind::kTuple) || is(Kind::kFrozenSet)
               ? std::span<const Value>(items_, header_ >> 8)
               : growing_->view();
  }
  std::span<const Pair> pairs() const;  // dict
  const Global& global() const { return *global_; }
  const Object& object() const { return *object_; }
  const Value& persistent_id() const { return *items_; }

  // For those who build: a list's or set's items, a dict's pairs.
  Items<Value>* growing_items() const { return growing_; }
  Items<Pair>* growing_pairs() const { return pairs_; }
  Object* mutable_object() const { return object_; }

  // Two values with the same non-null identity are one object in Python.
  // Null for those where that makes no difference (numbers, None, ()).
  const void* identity() const;

  // The value of the last pair with this string as its key, as Python's dict
  // would have it; nullptr if there is none. For a dict.
  const Value* find(std::string_view key) const;

 private:
  Value(Kind kind, std::uint64_t size, std::int64_t integer)
      : header_(static_cast<std::uint64_t>(kind) | size << 8),
        integer_(integer) {}

  std::uint64_t header_;  // kind in the low byte, size of text or tuple above
  union {
    std::int64_t integer_;
    double floating_;
    const char* text_;
    const Value* items_;
    Items<Value>* growing_;
    Items<Pair>* pairs_;
    const Global* global_;
    Object* object_;
  };
};

struct Pair {
  Value key;
  Value value;
};

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

struct Object {
  Making making = Making::kReduce;
  Value callable;
  Value arguments;
  Value keywords;            // None unless kNewEx
  Items<Value> states;       // each BUILD's, in order
  Items<Value> items;        // appended or added
  Items<Pair> pairs;         // set by key
};

inline std::span<const Pair> Value::pairs() const { return pairs_->view(); }

}  // namespace postflight
