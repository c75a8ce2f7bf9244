#include "profile/engine/sample_counts.h"

namespace postflight {

void HandlerTimes::add(const HandlerTimes& other) {
  for (std::size_t i = 0; i < kBuckets; ++i)
    buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  total_ns_ += other.total_ns_;
}

std::uint64_t HandlerTimes::median_ns() const {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    before += buckets_[i];
    if (2 * before > count_)
      return kBucket * i + kBucket / 2;
  }
  return 0;
}

void SampleCounts::add(const SampleCounts& other) {
  lost += other.lost;
  unproven += other.unproven;
  native_cut += other.native_cut;
  handler_times.add(other.handler_times);
}

}  // namespace postflight
