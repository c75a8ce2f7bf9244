#include "flight/classic/guid.h"

#include <cstdint>

#include <fmt/format.h>

namespace postflight {
namespace {

// The numbers are those of CPython's Objects/setobject.c.
std::int64_t frozen_set_hash(std::span<const Rank> members) {
  std::uint64_t hash = 0;
  for (const Rank member : members) {
    const auto value = static_cast<std::uint64_t>(member.value);
    hash ^= ((value ^ 89869747U) ^ (value << 16)) * 3644798167U;
  }
  hash ^= (std::uint64_t{members.size()} + 1) * 1927868237U;
  hash ^= (hash >> 11) ^ (hash >> 25);
  hash = hash * 69069U + 907133923U;
  // -1 is how CPython reports an error.
  return hash == ~std::uint64_t{0} ? 590923713
                                   : static_cast<std::int64_t>(hash);
}

}  // namespace

std::string classic_guid(std::string_view name, std::span<const Rank> members) {
  return fmt::format("{}{}", name, frozen_set_hash(members));
}

}  // namespace postflight
