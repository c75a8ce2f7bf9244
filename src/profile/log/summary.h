#pragma once

#include <cstdint>
#include <vector>

#include "profile/log/profile.h"

namespace postflight {

// Time and samples.
struct Spent {
  std::uint64_t ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t system_ns = 0;   // of ns, CPU time in the kernel
  std::uint64_t waiting_ns = 0;  // of ns, while the thread was not running

  void add(const Spent& more) {
    ns += more.ns;
    samples += more.samples;
    system_ns += more.system_ns;
    waiting_ns += more.waiting_ns;
  }
  bool operator==(const Spent&) const = default;
};

// A function: all frames of one name in one file.
struct FunctionTime {
  FrameKind kind = FrameKind::kPython;
  std::uint32_t name = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;  // with most of its own time; 0: not known
  Spent self = {};         // as the innermost frame
  Spent total = {};        // anywhere on the stack, counted once
};

struct PhaseTime {
  std::uint32_t phase = 0;
  Spent spent = {};  // without phases inside it
};

struct RankTime {
  std::int32_t rank = -1;
  std::uint64_t threads = 0;
  Spent spent = {};
};

// Where the time went, most first.
struct ProfileSummary {
  Spent spent = {};
  Spent waiting = {};  // part of it in which the thread was not running
  std::vector<FunctionTime> functions = {};
  std::vector<PhaseTime> phases = {};
  std::vector<RankTime> ranks = {};  // by rank
};

ProfileSummary summarise(const Profile& profile);

}  // namespace postflight
