#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "profile/agent/phase_layout.h"

namespace postflight {

std::filesystem::path phase_table_path(const std::filesystem::path& folder,
                                       pid_t pid);

// The writer's side of phase_layout.h. Thread-safe.
class PhaseTable {
 public:
  // Clears an existing table, which is from before this process called exec.
  static Result<PhaseTable> create(const std::filesystem::path& path);
  PhaseTable(PhaseTable&& other) noexcept;
  PhaseTable& operator=(PhaseTable&&) = delete;
  ~PhaseTable();

  // The phases of a thread nest. Phases for which the table has no space are
  // not seen.
  void begin(pid_t tid, std::string_view name, std::string_view frame_id);
  void end(pid_t tid);

 private:
  struct Thread {
    std::uint32_t slot = 0;
    std::vector<std::uint32_t> phases = {};
  };

  PhaseTable();
  std::uint32_t name_offset(std::string_view name, std::string_view frame_id);
  void show(pid_t tid, const Thread& thread);
  std::atomic_ref<std::uint32_t> word(std::size_t offset);

  std::byte* memory_ = nullptr;
  std::unique_ptr<std::mutex> mutex_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> names_;
  std::map<pid_t, Thread> threads_;
};

// A phase of the calling thread, until the end of the scope.
class Phase {
 public:
  // `table` must outlive it; null: there is no profiler.
  explicit Phase(PhaseTable* table, std::string_view name,
                 std::string_view frame_id = {});
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase();

 private:
  PhaseTable* table_;
  pid_t tid_;
};

struct SeenPhase {
  std::string name;
  std::string frame_id;
  std::uint64_t owner = 0;  // see phase_layout.h

  bool operator==(const SeenPhase&) const = default;
};

// The reader's side. The table belongs to another process and is not trusted.
class PhaseTableReader {
 public:
  static Result<PhaseTableReader> open(const std::filesystem::path& path);
  // Over memory that outlives it; nothing if there is no table there yet.
  static std::optional<PhaseTableReader> over(const std::byte* memory);
  PhaseTableReader(PhaseTableReader&& other) noexcept;
  PhaseTableReader& operator=(PhaseTableReader&&) = delete;
  ~PhaseTableReader();

  // The phases of a thread, the outermost first, as numbers for seen(); empty
  // if there are none, or while they change. With `tid` 0, those of the first
  // thread that is in any.
  std::vector<std::uint32_t> phases(pid_t tid) const;
  SeenPhase seen(std::uint32_t phase) const;
  // What the program calls a thread; empty if that is not known.
  std::string thread_name(pid_t tid) const;

 private:
  PhaseTableReader() = default;

  const std::byte* memory_ = nullptr;
  bool mapped_ = false;  // by this object
};

}  // namespace postflight
