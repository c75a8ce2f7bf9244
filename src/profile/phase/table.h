#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
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

// The writer's side of what phase_layout.h describes. Safe from several
// threads.
class PhaseTable {
 public:
  // An old one at that place, of a program that this process was before, is
  // emptied.
  static Result<PhaseTable> create(const std::filesystem::path& path);
  PhaseTable(PhaseTable&& other) noexcept;
  PhaseTable& operator=(PhaseTable&&) = delete;
  ~PhaseTable();

  // Phases of one thread end in the order opposite to their beginning. When
  // the table is full, phases go unseen.
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

// A phase of the calling thread, from here to the end of the scope however it
// is left.
class Phase {
 public:
  // `table` has to outlive it, and may be null: then nobody looks.
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

  bool operator==(const SeenPhase&) const = default;
};

// The reader's side. The table belongs to somebody else: nothing in it is
// believed.
class PhaseTableReader {
 public:
  static Result<PhaseTableReader> open(const std::filesystem::path& path);
  PhaseTableReader(PhaseTableReader&& other) noexcept;
  PhaseTableReader& operator=(PhaseTableReader&&) = delete;
  ~PhaseTableReader();

  // The phases a thread is in, the outermost first, as numbers for seen();
  // empty while they change, or if there are none. With `tid` 0, those of the
  // first thread that is in any.
  std::vector<std::uint32_t> phases(pid_t tid) const;
  SeenPhase seen(std::uint32_t phase) const;

 private:
  PhaseTableReader() = default;

  const std::byte* memory_ = nullptr;
};

}  // namespace postflight
