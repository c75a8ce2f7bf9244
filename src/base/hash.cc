#include "base/hash.h"

#include <cstddef>

#include <sys/random.h>

namespace postflight {
namespace {

// Odd constants with well spread bits; the hash only has to spread keys.
constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kSecond = 0xd1b54a32d192ed03;

// Both are secret: a known word that makes a factor zero would erase everything
// hashed before it.
struct Seed {
  std::uint64_t start = kFirst;
  std::uint64_t factor = kSecond;
};

const Seed& seed() {
  static const Seed made = [] {
    Seed random;
    // Without entropy the hash still works, but a hostile file could make its
    // keys collide.
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return random;
  }();
  return made;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

// The last bytes, of up to 15, as two words that may share some of them.
struct Words {
  std::uint64_t front = 0;
  std::uint64_t back = 0;
};

Words last_words(const std::byte* from, std::size_t count) {
  if (count >= 8)
    return {load_little_endian<std::uint64_t>(from),
            load_little_endian<std::uint64_t>(from + count - 8)};
  if (count >= 4)
    return {load_little_endian<std::uint32_t>(from),
            load_little_endian<std::uint32_t>(from + count - 4)};
  if (count == 0)
    return {};
  return {std::to_integer<std::uint64_t>(from[0]) << 8 |
              std::to_integer<std::uint64_t>(from[count / 2]),
          std::to_integer<std::uint64_t>(from[count - 1])};
}

}  // namespace

std::uint64_t hash_bytes(Bytes bytes) {
  const std::uint64_t factor = seed().factor;
  std::uint64_t state = seed().start ^ mix(bytes.size() + kFirst, kSecond);
  const std::byte* next = bytes.data();
  std::size_t left = bytes.size();
  const auto take = [&next, factor](std::uint64_t from) {
    const std::uint64_t mixed =
        mix(load_little_endian<std::uint64_t>(next) ^ factor,
            load_little_endian<std::uint64_t>(next + 8) ^ from);
    next += 16;
    return mixed;
  };
  // A group's list of ranks can take many thousands of bytes; four independent
  // lanes run in parallel.
  if (left >= 128) {
    std::uint64_t others[3] = {state ^ 1, state ^ 2, state ^ 3};
    for (; left >= 64; left -= 64) {
      state = take(state);
      for (std::uint64_t& other : others)
        other = take(other);
    }
    state = mix(state ^ others[0], factor) ^ mix(others[1] ^ factor, others[2]);
  }
  for (; left >= 16; left -= 16)
    state = take(state);
  const Words words = last_words(next, left);
  state = mix(words.front ^ factor, words.back ^ state);
  return mix(state ^ kFirst, kSecond);
}

std::uint64_t hash_on(std::uint64_t hash, std::uint64_t number) {
  return mix(number ^ seed().factor, hash ^ kFirst);
}

}  // namespace postflight
