#include "flight/hash.h"

#include <sys/random.h>

#include <cstddef>

namespace postflight {
namespace {

// Odd constants with well spread bits; the hash only has to spread keys.
constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kSecond = 0xd1b54a32d192ed03;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t random_seed() {
  std::uint64_t seed = kFirst;
  // Without entropy the hash still works; only a hostile file could tell.
  (void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
  return seed;
}

std::uint64_t load_up_to_8(const std::byte* from, std::size_t count) {
  std::uint64_t word = 0;
  if (count != 0)
    std::memcpy(&word, from, count);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(Bytes bytes) {
  static const std::uint64_t seed = random_seed();
  std::uint64_t state = seed ^ mix(bytes.size() + kFirst, kSecond);
  const std::byte* next = bytes.data();
  std::size_t left = bytes.size();
  const auto take = [&next](std::uint64_t from) {
    const std::uint64_t mixed =
        mix(load_little_endian<std::uint64_t>(next) ^ kSecond,
            load_little_endian<std::uint64_t>(next + 8) ^ from);
    next += 16;
    return mixed;
  };
  // A group's list of ranks has many thousands of bytes; these four don't wait
  // for each other.
  if (left >= 128) {
    std::uint64_t others[3] = {state ^ 1, state ^ 2, state ^ 3};
    for (; left >= 64; left -= 64) {
      state = take(state);
      for (std::uint64_t& other : others)
        other = take(other);
    }
    state =
        mix(state ^ others[0], kSecond) ^ mix(others[1] ^ kFirst, others[2]);
  }
  for (; left >= 16; left -= 16)
    state = take(state);
  const std::size_t first = left < 8 ? left : 8;
  state = mix(load_up_to_8(next, first) ^ kSecond,
              load_up_to_8(next + first, left - first) ^ state);
  return mix(state ^ kFirst, kSecond);
}

}  // namespace postflight
