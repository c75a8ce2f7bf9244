// Measures reading checkpoints against upper bounds of the machine in the same
// run: pread of the same bytes into the same buffers, a sweep over memory,
// memcpy. bench/checkpoint_table.py turns it into the table of
// docs/performance.md. With a file, opens that one on request.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>

#include <fcntl.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

#include "base/descriptor.h"
#include "base/temporary_folder.h"
#include "checkpoint/map_location.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/template.h"
#include "checkpoint/tensor/export.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/verification/verification.h"
#include "checkpoint/zip/crc32.h"
#include "must.h"
#include "torch_sample.h"

using namespace postflight;

namespace {

// Single-threaded work is measured in CPU time, so that other load does not
// matter; multi-threaded work in wall-clock time.
double now(bool one_thread) {
  timespec time{};
  ::clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                  &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

// The fastest of several runs, in seconds.
template <class Work>
double best(int runs, const Work& work, bool one_thread = true) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = now(one_thread);
    work();
    least = std::min(least, now(one_thread) - start);
  }
  return least;
}

void line(std::string_view what, double ratio, std::string_view against) {
  fmt::print("{}\t{:.2f}\t{}\n", what, ratio, against);
}

volatile std::uint64_t sink;

std::uint64_t sweep(Bytes bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 64 <= bytes.size(); i += 64)
    for (std::size_t j = 0; j < 8; ++j)
      sums[j] += load_little_endian<std::uint64_t>(&bytes[i + 8 * j]);
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

struct Loaded {
  Checkpoint checkpoint;
  std::vector<std::vector<std::byte>> rooms;
  std::vector<TensorTarget> targets;
  std::vector<std::uint64_t> offsets;
  Descriptor descriptor;
};

Loaded load(const std::filesystem::path& path) {
  Loaded loaded{must(Checkpoint::open(path)), {}, {}, {}, Descriptor()};
  for (const Tensor& tensor : loaded.checkpoint.tensors())
    loaded.rooms.emplace_back(tensor.bytes(), std::byte{1});
  for (std::size_t i = 0; i < loaded.rooms.size(); ++i) {
    const Tensor& tensor = loaded.checkpoint.tensors()[i];
    loaded.targets.push_back({&tensor, loaded.rooms[i]});
    const Storage& storage = loaded.checkpoint.storages()[tensor.storage];
    loaded.offsets.push_back(
        must(loaded.checkpoint.files()[0]->extent(*storage.entry)).offset);
  }
  loaded.descriptor = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return loaded;
}

double pread_all(Loaded& loaded, int runs, bool one_thread = true) {
  return best(
      runs,
      [&] {
        for (std::size_t i = 0; i < loaded.rooms.size(); ++i)
          sink = static_cast<std::uint64_t>(::pread(
              loaded.descriptor.number(), loaded.rooms[i].data(),
              loaded.rooms[i].size(), static_cast<off_t>(loaded.offsets[i])));
      },
      one_thread);
}

double read_all(Loaded& loaded, const ReadOptions& options, int runs) {
  const TensorReader reader(loaded.checkpoint, options);
  return best(
      runs, [&] { must(reader.read_all(loaded.targets)); },
      options.threads == 1);
}

// Bytes that this process has read by read(), pread() and the like.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string word;
  std::uint64_t count = 0;
  while (file >> word && word != "rchar:")
    continue;
  file >> count;
  return count;
}

// For a 1,024 by 1,024 matrix, relative to the size of the slice.
void measure_slice(const Loaded& loaded, std::string_view text) {
  const std::int64_t square[] = {1024, 1024};
  const std::int64_t stride[] = {1024, 1};
  Tensor matrix = loaded.checkpoint.tensors()[0];
  matrix.shape = square;
  matrix.stride = stride;
  const std::vector<SliceRange> ranges = must(parse_slice(text, square));
  const TensorSlice part = slice_tensor(matrix, ranges);
  std::vector<std::byte> room(part.tensor.bytes());
  const std::uint64_t before = bytes_read();
  const std::uint64_t asking = bytes_read() - before;
  must(TensorReader(loaded.checkpoint).read(part.tensor, room));
  const std::uint64_t after = bytes_read();
  line(fmt::format("bytes read for {} of 1024 by 1024", text),
       static_cast<double>(after - before - 2 * asking) /
           static_cast<double>(room.size()),
       "the bytes of the slice");
}

// Opens a file for each line of input and prints the time it took, so that the
// caller can alternate with another measurement.
void open_when_told(const std::filesystem::path& path) {
  std::string line;
  while (std::getline(std::cin, line)) {
    const double seconds =
        best(1, [&] { sink = must(Checkpoint::open(path)).tensors().size(); });
    fmt::print("{:.4f}\n", 1e3 * seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Memory is reused from run to run, as by CPython's allocator.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 32 << 20);
  if (argc > 1) {
    open_when_told(argv[1]);
    return 0;
  }
  const TemporaryFolder folder = must(TemporaryFolder::create());
  const std::filesystem::path many = folder.path() / "many.pt";
  const std::filesystem::path large = folder.path() / "large.pt";
  write_torch_sample(many, 10'000, 1024);
  write_torch_sample(large, 64, 1 << 20);

  const Template tenth = [] {
    Template made;
    made.kind = Template::Kind::kDict;
    for (int i = 0; i < 10'000; i += 10)
      made.items.emplace_back(fmt::format("layers.{}.weight", i), Template());
    return made;
  }();
  fmt::print(
      "open and read a tenth of them\t{:.3f}\tms\n",
      1e3 * best(10, [&] {
        const Checkpoint checkpoint = must(Checkpoint::open(many));
        const Selection chosen = must(select(checkpoint, 0, tenth));
        std::vector<std::byte> room(chosen.tensors.size() * 4096);
        std::vector<TensorTarget> targets;
        for (std::size_t i = 0; i < chosen.tensors.size(); ++i)
          targets.push_back(
              {checkpoint.tensor_at(checkpoint.nodes()[chosen.tensors[i].node]),
               std::span(room).subspan(i * 4096, 4096)});
        must(TensorReader(checkpoint).read_all(targets));
      }));

  {
    Loaded loaded = load(large);
    const double plain = pread_all(loaded, 7);
    line("tensors of 4 MiB",
         plain / read_all(loaded, {.threads = 1, .crc = CrcCheck::kNever}, 7),
         "pread");
    const double by_clock = pread_all(loaded, 7, false);
    line("with all threads",
         by_clock / read_all(loaded, {.crc = CrcCheck::kNever}, 7), "pread");
    line("with CRCs, one thread", plain / read_all(loaded, {.threads = 1}, 7),
         "pread");
    line("with CRCs, all threads", by_clock / read_all(loaded, {}, 7), "pread");
    measure_slice(loaded, "[100:228]");
    measure_slice(loaded, "[::16]");
  }
  {
    Loaded loaded = load(many);
    const double plain = pread_all(loaded, 9);
    line("10000 tensors of 4 KiB",
         plain / read_all(loaded, {.threads = 1, .crc = CrcCheck::kNever}, 9),
         "pread each");
    line("with all threads",
         pread_all(loaded, 9, false) /
             read_all(loaded, {.crc = CrcCheck::kNever}, 9),
         "pread each");
  }
  {
    std::vector<std::byte> memory(256 << 20);
    for (std::size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    const double swept = best(5, [&] { sink = sweep(memory); });
    const double ours = best(5, [&] { sink = crc32_of(memory); });
    // Against zlib in the cache, as memory can be slower than either.
    const Bytes near = Bytes(memory).first(1 << 20);
    const double near_ours = best(50, [&] { sink = crc32_of(near); });
    const auto by_zlib = [](Bytes bytes) {
      sink = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()),
                       bytes.size());
    };
    const double zlib = best(50, [&] { by_zlib(near); });
    line("CRC-32", swept / ours, "a sweep over memory");
    line("CRC-32", best(3, [&] { by_zlib(memory); }) / ours, "zlib's crc32");
    line("CRC-32 in the cache", zlib / near_ours, "zlib's crc32");
    const std::filesystem::path single = folder.path() / "single.pt";
    write_torch_sample(single, 1, 64 << 20);
    const Checkpoint checkpoint = must(Checkpoint::open(single));
    const double verified = best(
        5, [&] { sink = verify(checkpoint, {}).crc_good; }, false);
    line("verify, one record of 256 MiB",
         best(
             3, [&] { by_zlib(memory); }, false) /
             verified,
         "zlib's crc32 of it in memory");
  }
  {
    const std::filesystem::path turned = folder.path() / "turned.pt";
    write_transposed_sample(turned, 4096, 4096);
    const Checkpoint checkpoint = must(Checkpoint::open(turned));
    const Tensor& tensor = checkpoint.tensors()[0];
    std::vector<std::byte> room(tensor.bytes(), std::byte{1});
    std::vector<std::byte> copy(tensor.bytes(), std::byte{2});
    const TensorReader reader(checkpoint, {.threads = 1});
    const double copied =
        best(7, [&] { std::memcpy(copy.data(), room.data(), room.size()); });
    line("transposed, 64 MiB",
         copied / best(7, [&] { must(reader.read(tensor, room)); }),
         "memcpy of the result");
    const std::filesystem::path odd = folder.path() / "odd.pt";
    write_transposed_sample(odd, 4095, 4097);
    const Checkpoint odd_checkpoint = must(Checkpoint::open(odd));
    const Tensor& odd_tensor = odd_checkpoint.tensors()[0];
    const TensorReader odd_reader(odd_checkpoint, {.threads = 1});
    const std::span<std::byte> odd_room =
        std::span(room).first(odd_tensor.bytes());
    line("transposed, 4095 by 4097",
         copied / best(7, [&] { must(odd_reader.read(odd_tensor, odd_room)); }),
         "memcpy of the result");
    const TensorReader together(checkpoint);
    const double by_clock = best(
        7, [&] { std::memcpy(copy.data(), room.data(), room.size()); }, false);
    line("with all threads",
         by_clock / best(
                        7, [&] { must(together.read(tensor, room)); }, false),
         "memcpy of the result");
  }
  return 0;
}
