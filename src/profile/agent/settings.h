#pragma once

#include <cstddef>
#include <cstdint>

// Part of the agent: what the environment says.

namespace postflight {

struct Settings {
  static constexpr std::size_t kMostPath = 512;

  // Reads POSTFLIGHT_AGENT, "interval:token:arena:library", and ":native" if
  // programs other than Python are sampled, too. False if it is not set or not
  // valid.
  bool read();

  std::uint64_t interval_ns = 0;
  std::uint64_t token = 0;
  char arena[kMostPath] = {};    // path of the file
  char library[kMostPath] = {};  // path of the agent itself
  bool native = false;
  // For tests (POSTFLIGHT_NO_PERF): act as if perf events were refused.
  bool refuse_perf = false;
  // For tests (POSTFLIGHT_NO_TRAP): act as if the kernel were an older one.
  bool refuse_trap = false;
};

}  // namespace postflight
