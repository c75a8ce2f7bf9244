#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace postflight {

// How long the agent's handler took. The mean includes time in which the
// handler itself was interrupted; the median is its cost.
class HandlerTimes {
 public:
  void add(std::uint32_t ns) {
    const std::size_t bucket = ns / kBucket;
    buckets_[bucket < kBuckets ? bucket : kBuckets - 1] += 1;
    count_ += 1;
    total_ns_ += ns;
  }
  void add(const HandlerTimes& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t total_ns() const { return total_ns_; }
  // In steps of 20 ns, up to 20 us.
  std::uint64_t median_ns() const;

 private:
  static constexpr std::size_t kBucket = 20;
  static constexpr std::size_t kBuckets = 1000;

  std::array<std::uint64_t, kBuckets> buckets_ = {};
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
};

struct CpuTime {
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;

  std::uint64_t total_ns() const { return user_ns + system_ns; }
  bool operator==(const CpuTime&) const = default;
};

// How well the samples of a process were taken.
struct SampleCounts {
  std::uint64_t lost = 0;
  // Stacks of running threads that are only known to have been equal in two
  // copies.
  std::uint64_t unproven = 0;
  // Native stacks that went deeper than what was copied of them.
  std::uint64_t native_cut = 0;
  HandlerTimes handler_times = {};

  void add(const SampleCounts& other);
};

}  // namespace postflight
