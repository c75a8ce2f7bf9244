// The profiler's work inside the profiled program: profile_bench
//   walk/N         the agent's walk of N frames, warm
//   phase          beginning and ending a phase that a sampler can see
//   profile_phase  starting and stopping the profile of a phase

#include <csignal>
#include <cstring>
#include <vector>

#include <unistd.h>

#include <benchmark/benchmark.h>

#include "base/temporary_folder.h"
#include "profile/agent/fault_guard.h"
#include "profile/agent/frame_walk.h"
#include "profile/phase/table.h"

namespace postflight {
namespace {

// Frames of Python 3.11, contiguous as calls push them; those of functions with
// a few variables have 120 bytes.
constexpr std::size_t kFrameBytes = 120;
constexpr RingLayout kLayout = {.thread_frame = 0,
                                .frame_code = 32,
                                .frame_previous = 48,
                                .frame_instruction = 56,
                                .has_owner = 1,
                                .frame_owner = 69,
                                .frame_size = 72,
                                .first_shim_owner = 255,
                                .has_is_entry = 1,
                                .is_entry = 68,
                                .most_frames = 4096};

void walk(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> memory(kFrameBytes * (count + 1));
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const frame = memory.data() + kFrameBytes * i;
    std::memcpy(frame + 48, &previous, 8);
    previous = reinterpret_cast<std::uint64_t>(frame);
  }
  std::vector<std::uint64_t> out(kWalkWordsPerFrame * 4096);
  set_up_fault_guard(SIGRTMAX - 1, [](int, siginfo_t*, void*) {});
  for (auto _ : state) {
    const FrameWalk walked =
        walk_frames(reinterpret_cast<std::uint64_t>(&previous), kLayout, true,
                    out.data(), 4096);
    if (walked.frames != count)
      state.SkipWithError("not all frames");
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(walk)->Arg(15)->Arg(60)->Arg(200)->Arg(470);

void phase(benchmark::State& state) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  Result<PhaseTable> table =
      PhaseTable::create(phase_table_path(folder->path(), ::getpid()));
  for (auto _ : state)
    const Phase inside(&*table, "compile_inner", "0/0");
}
BENCHMARK(phase);

}  // namespace
}  // namespace postflight

BENCHMARK_MAIN();
