#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <signal.h>

#include "base/error.h"

namespace postflight {

// A mapped file whose pages can go away: when another process cuts it short,
// the kernel answers a look at what is missing with SIGBUS.
struct WatchedMapping {
  std::atomic<std::uintptr_t> begin = 0;  // 0: not in use
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> lost_pages = false;
};

// Both are called by MappedFile. What was lost is remembered with the path.
WatchedMapping* watch_mapping(const void* address, std::size_t size);
void unwatch_mapping(WatchedMapping* mapping,
                     const std::filesystem::path& path);

// While one lives, looking at pages of a MappedFile that its file has lost does
// not end the process. They read as zeros, and MappedFile::shrank() says so
// from then on: whoever has looked asks before believing what was seen. Any
// other SIGBUS does what it did before.
//
// A signal's handler is the whole process's, so main makes one and libraries
// none.
class TruncationGuard {
 public:
  static Result<TruncationGuard> start();

  TruncationGuard(TruncationGuard&& other) noexcept;
  TruncationGuard& operator=(TruncationGuard&&) = delete;
  ~TruncationGuard();

  // Files that had shrunk by the time they were closed.
  static std::vector<std::filesystem::path> shrunk_files();

 private:
  explicit TruncationGuard(const struct sigaction& before) : before_(before) {}

  struct sigaction before_;
  bool moved_from_ = false;
};

}  // namespace postflight
