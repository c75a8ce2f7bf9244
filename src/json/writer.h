#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/output.h"

namespace postflight {

// Writes JSON piece by piece: the one place that knows about commas, escapes
// and the rules that every answer of ours keeps.
//
//   JsonWriter json(out);
//   json.begin("postflight.trace/1");
//   json.field("rank", 3);
//   json.time("created_ns", created);         // always a string
//   json.array("ranks", ranks, &Rank::value);
//   json.object("place");
//   json.field("file", file);
//   json.end();
//   json.finish();                            // }\n
//
// - Integers beyond ±2^53, which readers would round, are strings. Nanosecond
//   times and 64-bit ids are strings whatever their size, so that a reader sees
//   one type.
// - Doubles are written as Python does: 1.0, 1e+16. NaN and the infinities are
//   the strings "NaN", "Infinity" and "-Infinity".
// - Text is exact if it is UTF-8; what a terminal would act on is written
//   \u009b, and a lone surrogate (three bytes, as Python's surrogatepass)
//   \ud800. In any other text the bytes that are not UTF-8 become \x9b and
//   backslashes are doubled; a field "name" is then followed by
//   "name_escaped": true.
//
// A value stands alone, in an array, or in an object after its key. Anything
// else is a mistake in our code, and asserted.
class JsonWriter {
 public:
  explicit JsonWriter(Output& out) : out_(out) {}
  ~JsonWriter() { assert(open_.empty() || std::uncaught_exceptions() > 0); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // An answer: an object that names its schema, on a line of its own. Several
  // may follow each other.
  void begin(std::string_view schema);
  void finish();

  void object() { open('{', '}'); }
  void array() { open('[', ']'); }
  void end();

  void object(std::string_view name) { key(name), object(); }
  void array(std::string_view name) { key(name), array(); }

  // What all items, each passed through `projection`, are as values. An array
  // of texts is marked like one text.
  template <std::ranges::input_range Range, class Projection = std::identity>
  void array(std::string_view name, const Range& items,
             Projection projection = {}) {
    array(name);
    bool exact = true;
    for (const auto& item : items) {
      const auto& projected = std::invoke(projection, item);
      if constexpr (kIsText<decltype(projected)>)
        exact = text(projected) && exact;
      else
        value(projected);
    }
    end();
    if (!exact)
      mark_escaped(name);
  }

  void key(std::string_view name);

  void value(std::nullptr_t) { literal("null"); }
  void value(std::same_as<bool> auto boolean) {
    literal(boolean ? "true" : "false");
  }
  void value(std::signed_integral auto number) {
    integer(std::int64_t{number});
  }
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) void value(Number number) {
    integer(std::uint64_t{number});
  }
  void value(std::floating_point auto number) { real(number); }
  void value(std::string_view bytes) { text(bytes); }
  void value(const char* bytes) { text(bytes); }

  // An integer that is a number whatever its size, as other formats want it.
  void number(std::signed_integral auto integer) {
    plain_integer(std::int64_t{integer});
  }
  void number(std::unsigned_integral auto integer) {
    plain_integer(std::uint64_t{integer});
  }

  template <class T>
  void field(std::string_view name, const T& item) {
    key(name);
    if constexpr (!kIsText<T>)
      value(item);
    else if (!text(item))
      mark_escaped(name);
  }
  template <class T>
  void field(std::string_view name, const std::optional<T>& item) {
    if (item)
      field(name, *item);
    else
      field(name, nullptr);
  }

  // Integers, or optional ones, that are strings in any case.
  void id(std::string_view name, const auto& number) {
    key(name);
    quoted(number);
  }
  void time(std::string_view name, const auto& nanoseconds) {
    id(name, nanoseconds);
  }

  // The members of an object that was written before: what many objects share
  // is made into text once.
  void members(std::string_view object);

  // Whether bytes are written as they are, and so need no mark.
  static bool keeps(std::string_view bytes);

 private:
  template <class T>
  static constexpr bool kIsText =
      std::convertible_to<T, std::string_view> &&
      !std::same_as<T, std::nullptr_t>;  // which converts, but is no text

  void before_value();
  void open(char opening, char closing);
  void literal(std::string_view text);
  void integer(std::int64_t number);
  void integer(std::uint64_t number);
  void real(double number);
  void quoted(std::signed_integral auto number) {
    quoted_integer(std::int64_t{number});
  }
  void quoted(std::unsigned_integral auto number) {
    quoted_integer(std::uint64_t{number});
  }
  template <class T>
  void quoted(const std::optional<T>& number) {
    if (number)
      quoted(*number);
    else
      value(nullptr);
  }
  void plain_integer(std::int64_t number);
  void plain_integer(std::uint64_t number);
  void quoted_integer(std::int64_t number);
  void quoted_integer(std::uint64_t number);
  // Returns whether it was written as it is.
  bool text(std::string_view bytes);
  void mark_escaped(std::string_view name);

  Output& out_;
  std::string open_;    // what closes each open object and array
  bool comma_ = false;  // before the next key or item
  bool after_key_ = false;
};

// What `write`, given a JsonWriter, writes.
template <std::invocable<JsonWriter&> Write>
std::string json_text(Write write) {
  std::string text;
  Output out([&text](std::string_view piece) { text += piece; });
  JsonWriter json(out);
  write(json);
  out.flush();
  return text;
}

}  // namespace postflight
