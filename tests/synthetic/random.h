#pragma once

#include <cstddef>
#include <cstdint>

namespace postflight::synthetic {

// Pseudo-random numbers that are the same for a seed with every compiler,
// unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  // 0 to count - 1.
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(next() % count);
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(
                     next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) {
    return next() % 100 < static_cast<std::uint64_t>(percent);
  }

 private:
  std::uint64_t state_;
};

}  // namespace postflight::synthetic
