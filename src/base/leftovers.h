#pragma once

#include "base/error.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

namespace postflight {

// The files and folders to remove if the process is interrupted. This is the
// only process-wide registry: a signal ends the whole process, and the clean-up
// cannot reach every live object. Nothing is ever looked up in it, so no other
// behaviour depends on it.
class Leftovers {
 public:
  // Removes everything registered by this process; a forked child does not
  // remove its parent's files. The handles stay valid.
  static void remove_all();

  // A unique name: "postflight-<pid>-<64 random bits>".
  static std::string unique_name();

 private:
  friend class Leftover;
  struct Entry;
  static void add(Entry& entry);
  static void drop(Entry& entry);

  // An intrusive list needs no destructor, so it is intact even for a signal
  // that arrives while the process exits.
  static std::mutex mutex_;
  static Entry* first_;
};

// A temporary file or folder, removed with all its contents when the handle is
// destroyed or the process is interrupted. Symlinks are removed, not followed.
// Register a path before creating it, so that it is never left unregistered.
class Leftover {
 public:
  explicit Leftover(const std::filesystem::path& path);
  Leftover(Leftover&& other) noexcept;
  Leftover& operator=(Leftover&& other) noexcept;
  ~Leftover();

  // Removes it now. Does nothing in a forked child or if nothing is registered.
  Result<> remove();
  // Unregisters it: the file or folder stays.
  void release();

 private:
  std::unique_ptr<Leftovers::Entry> entry_;
};

}  // namespace postflight
