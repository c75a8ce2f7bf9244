// Measures reading distributed checkpoints; bench/dcp_table.py turns it into
// the table of docs/performance.md.
//
// dcp_bench open FOLDER     seconds of CPU time to open it
// dcp_bench read FOLDER     seconds to read all of it on one thread, and for
//                           pread of the same bytes into the same buffers
// dcp_bench threads FOLDER  wall-clock seconds on one thread and on all
// dcp_bench slice FOLDER S  bytes read for a slice of the first tensor, per
//                           byte of the slice
// dcp_bench peak FOLDER     peak MiB while reading one tensor, and MiB of that
//                           tensor

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "must.h"

using namespace postflight;

namespace {

constexpr int kRounds = 9;
constexpr std::uintptr_t kPage = 4096;

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Work>
double timed(const Work& work, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const double start = now(clock);
  work();
  return now(clock) - start;
}

// Buffers for all tensors of a checkpoint, already faulted in.
struct Rooms {
  explicit Rooms(const Checkpoint& checkpoint) {
    for (const Tensor& tensor : checkpoint.tensors())
      rooms.emplace_back(tensor.bytes(), std::byte{1});
    for (std::size_t i = 0; i < rooms.size(); ++i)
      targets.push_back({&checkpoint.tensors()[i], rooms[i]});
  }

  std::vector<std::vector<std::byte>> rooms;
  std::vector<TensorTarget> targets;
};

void open_bench(const std::string& folder) {
  // Memory is reused from run to run, as by CPython's allocator.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 32 << 20);
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const double spent = timed([&] { must(Checkpoint::open(folder)); });
    best = std::min(best, spent);
  }
  fmt::print("{}\n", best);
}

// The bytes of each chunk's item, stored uncompressed in its archive.
std::vector<std::uint64_t> data_offsets(const Checkpoint& checkpoint,
                                        const Assembly& assembly) {
  std::vector<std::uint64_t> offsets;
  for (const AssemblyChunk& chunk : assembly.chunks) {
    const Bytes item = checkpoint.files()[chunk.file]->bytes().subspan(
        chunk.extent.offset, chunk.extent.size);
    const ZipDirectory directory = must(ZipDirectory::read(item, {}));
    for (const ZipEntry& entry : directory.entries())
      if (entry.name.ends_with("/data/0"))
        offsets.push_back(chunk.extent.offset +
                          must(directory.extent(entry)).offset);
  }
  return offsets;
}

void read_bench(const std::string& folder) {
  const Checkpoint checkpoint = must(Checkpoint::open(folder));
  const TensorReader reader(checkpoint, {.threads = 1});
  Rooms rooms(checkpoint);
  std::vector<Descriptor> files;
  for (const DataFile* const file : checkpoint.files())
    files.emplace_back(::open(file->path().c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::vector<std::uint64_t>> offsets;
  for (const Assembly* const assembly : checkpoint.assemblies())
    offsets.push_back(data_offsets(checkpoint, *assembly));
  // The same bytes, one chunk after the other.
  const auto by_pread = [&] {
    for (std::size_t i = 0; i < rooms.rooms.size(); ++i) {
      const Assembly& assembly = *checkpoint.assemblies()[i];
      std::byte* to = rooms.rooms[i].data();
      for (std::size_t j = 0; j < assembly.chunks.size(); ++j) {
        const std::size_t size = assembly.bytes_of(assembly.chunks[j]);
        if (::pread(files[assembly.chunks[j].file].number(), to, size,
                    static_cast<off_t>(offsets[i][j])) !=
            static_cast<ssize_t>(size))
          std::exit(1);
        to += size;
      }
    }
  };
  double ours = std::numeric_limits<double>::infinity();
  double theirs = ours;
  for (int round = 0; round < kRounds; ++round) {
    ours = std::min(ours, timed([&] { must(reader.read_all(rooms.targets)); }));
    theirs = std::min(theirs, timed(by_pread));
  }
  fmt::print("{} {}\n", ours, theirs);
}

void threads_bench(const std::string& folder) {
  const Checkpoint checkpoint = must(Checkpoint::open(folder));
  Rooms rooms(checkpoint);
  double best[2] = {std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t threads = 0; threads < 2; ++threads) {
      const TensorReader reader(checkpoint, {.threads = threads});
      best[threads] = std::min(
          best[threads], timed([&] { must(reader.read_all(rooms.targets)); },
                               CLOCK_MONOTONIC));
    }
  fmt::print("{} {}\n", best[1], best[0]);
}

// Reads through a mapping cause no system calls. So all pages are protected and
// counted as each is unprotected on its first access.
std::atomic<std::uint64_t> pages_touched;

void unlock_page(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (::mprotect(reinterpret_cast<void*>(address / kPage * kPage), kPage,
                 PROT_READ) != 0)
    ::_exit(3);
  ++pages_touched;
}

// Bytes that this process has read by read(), pread() and the like.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  file >> name >> value;
  return value;
}

void slice_bench(const std::string& folder, std::string_view text) {
  const Checkpoint checkpoint = must(Checkpoint::open(folder));
  const TensorReader reader(checkpoint, {.threads = 1});
  const Tensor& first = checkpoint.tensors().front();
  const TensorSlice slice =
      slice_tensor(first, must(parse_slice(text, first.shape)));
  std::vector<std::byte> room(slice.tensor.bytes(), std::byte{1});
  struct sigaction action {};
  action.sa_sigaction = unlock_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  for (const DataFile* const file : checkpoint.files())
    if (::mprotect(const_cast<std::byte*>(file->bytes().data()), file->size(),
                   PROT_NONE) != 0)
      std::exit(1);
  const std::uint64_t before = bytes_read();
  const std::uint64_t asking = bytes_read() - before;
  must(reader.read(slice.tensor, room));
  const std::uint64_t called = bytes_read() - before - 2 * asking;
  fmt::print("{}\n", static_cast<double>(called + pages_touched * kPage) /
                         static_cast<double>(room.size()));
}

void peak_bench(const std::string& folder) {
  const Checkpoint checkpoint = must(Checkpoint::open(folder));
  const TensorReader reader(checkpoint);
  const Tensor& first = checkpoint.tensors().front();
  std::vector<std::byte> room(first.bytes());
  must(reader.read(first, room));
  // Not rusage, which inherits the parent's peak.
  std::ifstream status("/proc/self/status");
  std::string word;
  double most = 0;
  while (status >> word && word != "VmHWM:")
    continue;
  status >> most;
  fmt::print("{} {}\n", most / 1024,
             static_cast<double>(room.size()) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return 2;
  const std::string_view what = argv[1];
  if (what == "open")
    open_bench(argv[2]);
  else if (what == "read")
    read_bench(argv[2]);
  else if (what == "threads")
    threads_bench(argv[2]);
  else if (what == "slice" && argc > 3)
    slice_bench(argv[2], argv[3]);
  else if (what == "peak")
    peak_bench(argv[2]);
  else
    return 2;
  return 0;
}
