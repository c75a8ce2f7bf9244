// Profiles the phases of a compilation as torch's compile-time profiler does,
// for `postflight profile report`. COMPILE_STROBELIGHT_FRAME_FILTER=1/ leaves
// out the first frame.
//
//     c++ -std=c++17 compile.cc $(pkg-config --cflags --libs postflight)
//     ./a.out compile.pflog && postflight profile report compile.pflog

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <postflight/profile.h>

namespace {

int optimise(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  volatile unsigned sum = 0;
  while (std::chrono::steady_clock::now() < end)
    for (unsigned i = 0; i < 10000; ++i)
      sum = sum + i;
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: compile FILE\n");
    return 2;
  }
  try {
    postflight::Context context;
    context.set_log(
        [](postflight_log_level, std::string_view, std::string_view message) {
          std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()),
                       message.data());
        });
    postflight::CompileTimeProfiler profiler(argv[1], &context);
    for (const char* const frame : {"0/0", "1/0"}) {
      const int kernels = profiler.profile_compile_time(
          "compile_inner", frame, [&profiler, frame] {
            return profiler.profile_compile_time("backward", frame, [] {
              return optimise(std::chrono::milliseconds(400));
            });
          });
      std::printf("frame %s: %d kernels\n", frame, kernels);
    }
    try {
      profiler.profile_compile_time("compile_inner", "2/0", [] {
        throw std::runtime_error("a graph break");
      });
    } catch (const std::runtime_error& error) {
      std::printf("frame 2/0: %s\n", error.what());
    }
    const postflight_compile_counters counters = profiler.counters();
    std::printf("success %llu, failed %llu, recursive %llu, filtered %llu\n",
                static_cast<unsigned long long>(counters.success),
                static_cast<unsigned long long>(counters.failed),
                static_cast<unsigned long long>(counters.ignored_recursive),
                static_cast<unsigned long long>(counters.filtered));
    return 0;
  } catch (const postflight::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
