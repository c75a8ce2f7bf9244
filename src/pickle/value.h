#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace postflight {

// The kind of a pickle's value. From kGlobal on they are not data but actions
// that a Python reader would take.
enum class Kind : std::uint8_t {
  kNone,
  kBoolean,
  kInteger,     // fits 64 bits
  kBigInteger,  // text(): two's complement, little-endian, more than 8 bytes
  kFloat,
  kString,        // text(): UTF-8 as written, lone surrogates and errors kept
  kLegacyString,  // text(): Python 2's str, bytes in an unknown encoding
  kBytes,
  kByteArray,
  kTuple,
  kFrozenSet,
  kList,
  kSet,
  kDict,
  kGlobal,      // a name that Python would import; here only a name
  kObject,      // a call that Python would make; here only a record of it
  kPersistent,  // a persistent id, resolved by the application
  kExtension,   // a code from Python's copyreg registry
  kBuffer,      // the n-th out-of-band buffer
  kReadOnlyBuffer,
};

// A growing array in an Arena: the items of a list, set or dict.
template <class T>
struct Items {
  T* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  std::span<const T> view() const { return {data, size}; }
};

// Most containers have up to three items, and nearly all others up to eight:
// too few for a memmove call to pay off.
template <class T>
void copy_items(const T* from, std::size_t count, T* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (count > 8) {
    std::copy_n(from, count, to);
    return;
  }
  if (count > 3) {  // the first four and the last four, which may overlap
    std::memcpy(to, from, 4 * sizeof(T));
    std::memcpy(to + count - 4, from + count - 4, 4 * sizeof(T));
    return;
  }
  if (count > 0)
    to[0] = from[0];
  if (count > 1)
    to[1] = from[1];
  if (count > 2)
    to[2] = from[2];
}

struct Pair;
struct Global;
struct Object;

// One value of a pickle: a kind and a small number or an address, in 8 bytes.
// Parsing is limited by memory writes, so nothing is copied that is already in
// the input: strings, floats and large integers point to their bytes there,
// and a string's length is read from the bytes before it. Containers are in
// the arena of the Machine or Builder that made them. Input and arena must
// outlive the value. Copies of a list, set, dict or object refer to the same
// container.
class Value {
 public:
  constexpr Value() = default;  // None

  // The width of the length before a text; text made by us has kEight.
  enum class Prefix : std::uint8_t { kOne, kFour, kEight };

  static Value none() { return {}; }
  static Value boolean(bool value) {
    return Value(Kind::kBoolean, 0, std::uint64_t{value});
  }
  // An integer of up to 56 bits, as BININT and its kin have.
  static Value small(std::int64_t value) {
    return Value(Kind::kInteger, 0, static_cast<std::uint64_t>(value));
  }
  static constexpr bool is_small(std::int64_t value) {
    return value >= -(std::int64_t{1} << 55) && value < (std::int64_t{1} << 55);
  }
  static Value wide_integer(const void* little_endian) {
    return Value(Kind::kInteger, 1, address(little_endian));
  }
  static Value big_endian_float(const void* bytes) {
    return Value(Kind::kFloat, 0, address(bytes));
  }
  static Value native_float(const double* number) {
    return Value(Kind::kFloat, 1, address(number));
  }
  // kString, kLegacyString, kBytes, kByteArray or kBigInteger. The length
  // precedes the text.
  static Value text(Kind kind, Prefix prefix, const void* text) {
    return Value(kind, static_cast<std::uint8_t>(prefix), address(text));
  }
  // kTuple or kFrozenSet. counted[0] is count(n), followed by n items; nullptr
  // if empty.
  static Value fixed(Kind kind, const Value* counted) {
    return Value(kind, 0, address(counted));
  }
  static Value count(std::uint64_t items) {
    Value made;
    made.bits_ = items;
    return made;
  }
  std::uint64_t count() const { return bits_; }
  // kList or kSet.
  static Value growing(Kind kind, const Items<Value>* items) {
    return Value(kind, 0, address(items));
  }
  static Value dict(const Items<Pair>* pairs) {
    return Value(Kind::kDict, 0, address(pairs));
  }
  static Value global(const Global* global) {
    return Value(Kind::kGlobal, 0, address(global));
  }
  static Value object(const Object* object) {
    return Value(Kind::kObject, 0, address(object));
  }
  static Value persistent(const Value* id) {
    return Value(Kind::kPersistent, 0, address(id));
  }
  // kExtension, kBuffer or kReadOnlyBuffer.
  static Value numbered(Kind kind, std::uint32_t number) {
    return Value(kind, 0, number);
  }

  Kind kind() const { return static_cast<Kind>(bits_ & kKindMask); }
  bool is(Kind kind) const { return this->kind() == kind; }

  // Each accessor is only for the kinds named with it.
  bool boolean() const { return number() != 0; }
  std::int64_t integer() const;  // also of the numbered kinds
  double floating() const;
  std::string_view text() const;
  std::span<const Value> items() const;  // tuple, frozenset, list, set
  std::span<const Pair> pairs() const;   // dict
  const Global& global() const { return *at<const Global>(); }
  const Object& object() const { return *at<const Object>(); }
  const Value& persistent_id() const { return *at<const Value>(); }

  // For Builder and Machine: a list's or set's items, a dict's pairs.
  Items<Value>* growing_items() const { return at<Items<Value>>(); }
  Items<Pair>* growing_pairs() const { return at<Items<Pair>>(); }
  Object* mutable_object() const { return at<Object>(); }

  std::uint64_t bits() const { return bits_; }  // for comparison only
  // Two values with the same non-null identity are one object in Python.
  // Null for values whose identity does not matter (numbers, None, ()).
  const void* identity() const;

  // For a dict: the value of the last pair with this key, as in Python, or
  // nullptr.
  const Value* find(std::string_view key) const;

 private:
  static constexpr std::uint64_t kKindMask = 31;
  static constexpr int kFormShift = 5;
  static constexpr int kPayloadShift = 8;

  Value(Kind kind, std::uint8_t form, std::uint64_t payload)
      : bits_(static_cast<std::uint64_t>(kind) |
              std::uint64_t{form} << kFormShift | payload << kPayloadShift) {}

  static std::uint64_t address(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }
  template <class T>
  T* at() const {
    return reinterpret_cast<T*>(bits_ >> kPayloadShift);
  }
  std::int64_t number() const {
    return static_cast<std::int64_t>(bits_) >> kPayloadShift;
  }
  unsigned form() const {
    return static_cast<unsigned>(bits_ >> kFormShift & 7);
  }

  // Kind in 5 bits, form in 3, then the number or address: user addresses
  // have 47 bits, or 56 where a program asks for them.
  std::uint64_t bits_ = 0;
};

struct Pair {
  Value key;
  Value value;
};

// Inline, as they are called for millions of values.

inline std::int64_t Value::integer() const {
  if (form() == 0)
    return number();
  std::int64_t wide = 0;
  std::memcpy(&wide, at<const char>(), sizeof(wide));
  return wide;
}

inline std::string_view Value::text() const {
  const char* const text = at<const char>();
  const auto prefix = static_cast<Prefix>(form());
  if (prefix == Prefix::kOne)
    return {text, static_cast<std::uint8_t>(text[-1])};
  std::uint32_t four = 0;
  std::uint64_t eight = 0;
  if (prefix == Prefix::kFour)
    std::memcpy(&four, text - sizeof(four), sizeof(four));
  else
    std::memcpy(&eight, text - sizeof(eight), sizeof(eight));
  return {text, four + eight};
}

inline std::span<const Value> Value::items() const {
  if (!is(Kind::kTuple) && !is(Kind::kFrozenSet))
    return growing_items()->view();
  const Value* const counted = at<const Value>();
  if (counted == nullptr)
    return {};
  return {counted + 1, counted->count()};
}

inline std::span<const Pair> Value::pairs() const {
  return growing_pairs()->view();
}

}  // namespace postflight
