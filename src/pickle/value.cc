#include "pickle/value.h"

#include <algorithm>
#include <bit>

namespace postflight {
namespace {

template <class T>
T load(const char* from) {
  T number;
  std::memcpy(&number, from, sizeof(T));
  return number;
}

}  // namespace

static_assert(sizeof(Value) == 8 && sizeof(Pair) == 16);

std::int64_t Value::integer() const {
  return form() == 0 ? number() : load<std::int64_t>(at<const char>());
}

double Value::floating() const {
  const auto bits = load<std::uint64_t>(at<const char>());
  return std::bit_cast<double>(form() == 0 ? __builtin_bswap64(bits) : bits);
}

std::string_view Value::text() const {
  const char* const text = at<const char>();
  switch (static_cast<Prefix>(form())) {
    case Prefix::kOne:
      return {text, load<std::uint8_t>(text - 1)};
    case Prefix::kFour:
      return {text, load<std::uint32_t>(text - 4)};
    default:
      return {text, load<std::uint64_t>(text - 8)};
  }
}

std::span<const Value> Value::items() const {
  if (!is(Kind::kTuple) && !is(Kind::kFrozenSet))
    return growing_items()->view();
  const Value* const counted = at<const Value>();
  if (counted == nullptr)
    return {};
  return {counted + 1, counted->count()};
}

std::span<const Pair> Value::pairs() const {
  return growing_pairs()->view();
}

const void* Value::identity() const {
  switch (kind()) {
    case Kind::kNone:
    case Kind::kBoolean:
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kExtension:
    case Kind::kBuffer:
    case Kind::kReadOnlyBuffer:
      return nullptr;
    default:
      return at<const void>();
  }
}

const Value* Value::find(std::string_view key) const {
  const std::span<const Pair> all = pairs();
  const auto found =
      std::find_if(all.rbegin(), all.rend(), [key](const Pair& pair) {
        return pair.key.is(Kind::kString) && pair.key.text() == key;
      });
  return found == all.rend() ? nullptr : &found->value;
}

}  // namespace postflight
