#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pickle/items.h"
#include "pickle/kind.h"

namespace postflight {

struct Pair;
struct Global;
struct Object;

// One value of a pickle: a kind and a small number or an address, in 8 bytes.
// Parsing is bound by the memory it writes, so nothing is copied that the
// input already holds: strings, floats and large integers are addresses of
// their bytes there, with a string's length read from the bytes before it.
// Containers lie in the arena of the Machine or Builder that made them. Input
// and arena must outlive the value. Copies of a list, set, dict or object are
// the same container.
class Value {
 public:
  constexpr Value() = default;  // None

  // How wide the length before a text is; text made by us has kEight.
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
  // stands before the text.
  static Value text(Kind kind, Prefix prefix, const void* text) {
    return Value(kind, static_cast<std::uint8_t>(prefix), address(text));
  }
  // kTuple or kFrozenSet. counted[0] is count(n), then come n items; nullptr
  // for the empty one.
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

  // Each accessor is for the kinds named with it only.
  bool boolean() const { return number() != 0; }
  std::int64_t integer() const;  // also of the numbered kinds
  double floating() const;
  std::string_view text() const;
  std::span<const Value> items() const;  // tuple, frozenset, list, set
  std::span<const Pair> pairs() const;   // dict
  const Global& global() const { return *at<const Global>(); }
  const Object& object() const { return *at<const Object>(); }
  const Value& persistent_id() const { return *at<const Value>(); }

  // For those who build: a list's or set's items, a dict's pairs.
  Items<Value>* growing_items() const { return at<Items<Value>>(); }
  Items<Pair>* growing_pairs() const { return at<Items<Pair>>(); }
  Object* mutable_object() const { return at<Object>(); }

  std::uint64_t bits() const { return bits_; }  // to tell values apart only
  // Two values with the same non-null identity are one object in Python.
  // Null for those where that makes no difference (numbers, None, ()).
  const void* identity() const;

  // Of a dict: of the last pair with this key, as in Python; or nullptr.
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

}  // namespace postflight

#include "pickle/value_access.h"
