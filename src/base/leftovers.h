#pragma once

#include "base/error.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

namespace postflight {

// The files and folders that are to go if the process is interrupted. This is
// the program's one registry for the whole process: a signal ends the whole
// process, and whoever cleans up then can't know every object that is at work.
// Nothing is ever looked up in it, so no behaviour depends on it.
class Leftovers {
 public:
  // Removes everything registered by this process; a forked child leaves its
  // parent's things alone. The handles stay valid.
  static void remove_all();

  // A name nobody else has: "postflight-<pid>-<64 random bits>".
  static std::string unique_name();

 private:
  friend class Leftover;
  struct Entry;
  static void add(Entry& entry);
  static void drop(Entry& entry);

  // A list threaded through the entries needs no destructor, so a signal that
  // comes while the process exits still finds it whole.
  static std::mutex mutex_;
  static Entry* first_;
};

// One file or folder of ours, removed with all its contents when the handle
// goes or the process is interrupted. Links are removed, never followed.
// Register a path before making it, so that no moment is left uncovered.
class Leftover {
 public:
  explicit Leftover(const std::filesystem::path& path);
  Leftover(Leftover&& other) noexcept;
  Leftover& operator=(Leftover&& other) noexcept;
  ~Leftover();

  // Removes it now. Does nothing in a forked child, or when there is nothing.
  Result<> remove();
  // Forgets it: the file or folder stays.
  void release();

 private:
  std::unique_ptr<Leftovers::Entry> entry_;
};

}  // namespace postflight
