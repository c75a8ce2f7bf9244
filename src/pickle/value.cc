#include "pickle/value.h"

#include <algorithm>
#include <bit>
#include <cstring>

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

double Value::floating() const {
  const auto bits = load<std::uint64_t>(at<const char>());
  return std::bit_cast<double>(form() == 0 ? __builtin_bswap64(bits) : bits);
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
