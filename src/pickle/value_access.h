#pragma once

// The bodies of Value's accessors that are called for each of many million
// values; part of value.h.

#include <cstring>

#include "pickle/value.h"

namespace postflight {

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
