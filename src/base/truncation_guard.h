#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <signal.h>

#include "base/error.h"

namespace postflight {

// A mapped file whose pages can disappear: when another process truncates it,
// reading the missing part raises SIGBUS.
struct WatchedMapping {
  std::atomic<std::uintptr_t> begin = 0;  // 0: not in use
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> lost_pages = false;
};

// Called by MappedFile. A mapping that lost pages is recorded with its path.
WatchedMapping* watch_mapping(const void* address, std::size_t size);
void unwatch_mapping(WatchedMapping* mapping,
                     const std::filesystem::path& path);

// While one exists, reading pages of a MappedFile that its file has lost does
// not kill the process. They read as zeros and MappedFile::shrank() is true
// from then on: check it before trusting what was read. Any other SIGBUS has
// its previous action.
//
// Signal handlers are process-wide, so only main creates one, never a library.
class TruncationGuard {
 public:
  static Result<TruncationGuard> start();
  // Whether one exists. Where none does, as in the library, files are read into
  // memory as far as possible instead of being mapped.
  static bool exists();

  TruncationGuard(TruncationGuard&& other) noexcept;
  TruncationGuard& operator=(TruncationGuard&&) = delete;
  ~TruncationGuard();

  // Files that had been truncated by the time they were closed.
  static std::vector<std::filesystem::path> shrunk_files();

 private:
  explicit TruncationGuard(const struct sigaction& before) : before_(before) {}

  struct sigaction before_;
  bool moved_from_ = false;
};

}  // namespace postflight
