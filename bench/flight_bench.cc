// Reading a job's dumps into the model: flight_bench FOLDER [THREADS [RUNS]].
// bench/flight_table.py runs it beside CPython and prints the ratios.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "flight/model/job_loader.h"

namespace postflight {
namespace {

// Current anonymous memory in bytes, without the mapped dumps.
std::uint64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:"))
      return std::strtoull(line.c_str() + 8, nullptr, 10) * 1024;
  return 0;
}

int run(const std::string& folder, std::size_t threads, int runs) {
  double best = 1e30;
  double processor = 1e30;
  std::uint64_t peak = 0;
  std::uint64_t entries = 0;
  std::uint64_t model = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < runs; ++i) {
    std::jthread sampler([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        peak = std::max(peak, anonymous_memory());
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
    bytes = 0;
    const std::clock_t before = std::clock();
    const auto begin = std::chrono::steady_clock::now();
    const Result<Job> job =
        load_job(std::span(&folder, 1),
                 {.on_file = [&](std::uint64_t size) { bytes += size; }},
                 {.threads = threads});
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    processor = std::min(
        processor, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
    if (!job) {
      fmt::print(stderr, "flight_bench: {}\n", job.error().message());
      return 1;
    }
    best = std::min(best, took.count());
    entries = job->entry_count();
    model = job->memory_bytes();
  }
  fmt::print(
      "{{\"seconds\": {:.4f}, \"processor\": {:.4f}, \"entries\": {}, "
      "\"bytes\": {}, "
      "\"anonymous\": {}, \"model\": {}}}\n",
      best, processor, entries, bytes, peak, model);
  return 0;
}

}  // namespace
}  // namespace postflight

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: flight_bench FOLDER [THREADS [RUNS]]\n");
    return 2;
  }
  return postflight::run(argv[1],
                         argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0,
                         argc > 3 ? std::atoi(argv[3]) : 3);
}
