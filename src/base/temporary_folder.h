#pragma once

#include "base/error.h"
#include "base/leftovers.h"

#include <filesystem>

namespace postflight {

// A new folder that only its owner can access. It is removed with everything in
// it by the destructor; symlinks inside are removed, not followed.
class TemporaryFolder {
 public:
  // Without a parent it is created in $TMPDIR, or in /tmp.
  static Result<TemporaryFolder> create(std::filesystem::path parent = {});

  // Absolute.
  const std::filesystem::path& path() const { return path_; }
  // Keeps the folder, e.g. for debugging.
  void keep() { leftover_.release(); }
  Result<> remove() { return leftover_.remove(); }

 private:
  explicit TemporaryFolder(std::filesystem::path path);

  std::filesystem::path path_;
  Leftover leftover_;
};

}  // namespace postflight
