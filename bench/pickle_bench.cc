// Parsing pickles into the full value tree, one thread: pickle_bench FILE...
// bench/pickle_table.py runs it beside CPython and prints the ratios.

#include <memory_resource>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/file.h"
#include "pickle/machine.h"
#include "pickle/text/disassembler.h"

namespace postflight {
namespace {

double count_opcodes(Bytes bytes) {
  Disassembler disassembler(bytes);
  double count = 0;
  for (auto next = disassembler.next(); next && *next;
       next = disassembler.next())
    ++count;
  return count;
}

void load(benchmark::State& state, Bytes bytes, bool reuse) {
  Machine reused;
  std::uint64_t memory = 0;
  for (auto _ : state) {
    Machine fresh;
    Machine& machine = reuse ? reused : fresh;
    machine.reset();
    const Result<Pickle> pickle = machine.load(bytes);
    if (!pickle) {
      state.SkipWithError(std::string(pickle.error().message()).c_str());
      return;
    }
    memory = machine.memory_bytes();
  }
  const double size = static_cast<double>(bytes.size());
  state.counters["opcodes"] = count_opcodes(bytes);
  state.counters["input_bytes"] = size;
  state.counters["memory_per_byte"] = static_cast<double>(memory) / size;
}

// The arena's typical use: containers of a few dozen bytes, ten thousand per
// dump.
constexpr int kContainers = 10'000;

void allocate_from_arena(benchmark::State& state) {
  Arena arena;
  for (auto _ : state) {
    arena.reset();
    for (int i = 0; i < kContainers; ++i)
      benchmark::DoNotOptimize(arena.allocate<Value>(2));
  }
}

void allocate_from_pmr(benchmark::State& state) {
  std::vector<std::byte> buffer(1 << 20);
  for (auto _ : state) {
    std::pmr::monotonic_buffer_resource resource(buffer.data(), buffer.size());
    std::pmr::memory_resource* const memory = &resource;
    for (int i = 0; i < kContainers; ++i)
      benchmark::DoNotOptimize(memory->allocate(2 * sizeof(Value)));
  }
}

}  // namespace
}  // namespace postflight

int main(int argc, char** argv) {
  using namespace postflight;
  benchmark::Initialize(&argc, argv);
  std::vector<MappedFile> files;
  for (int i = 1; i < argc; ++i) {
    Result<MappedFile> file = MappedFile::open(argv[i]);
    if (!file) {
      fmt::print(stderr, "pickle_bench: {}\n", file.error().message());
      return 2;
    }
    const Bytes bytes = file->bytes();
    files.push_back(*std::move(file));
    const auto add = [&](const char* how, bool reuse) {
      benchmark::RegisterBenchmark(fmt::format("{}/{}", how, argv[i]).c_str(),
                                   [bytes, reuse](benchmark::State& state) {
                                     load(state, bytes, reuse);
                                   });
    };
    add("reused", true);
    add("fresh", false);
  }
  benchmark::RegisterBenchmark("allocate/arena", allocate_from_arena);
  benchmark::RegisterBenchmark("allocate/pmr", allocate_from_pmr);
  benchmark::RunSpecifiedBenchmarks();
}
