#pragma once

#include "base/error.h"
#include "base/leftovers.h"

#include <filesystem>

namespace postflight {

// A new folder that only its owner may enter. It goes with everything in it
// when the object does; links inside are removed, not followed.
class TemporaryFolder {
 public:
  // Without a parent it lies in $TMPDIR, or in /tmp.
  static Result<TemporaryFolder> create(std::filesystem::path parent = {});

  // Absolute.
  const std::filesystem::path& path() const { return path_; }
  // Leaves the folder in place, for someone to look at.
  void keep() { leftover_.release(); }
  Result<> remove() { return leftover_.remove(); }

 private:
  explicit TemporaryFolder(std::filesystem::path path);

  std::filesystem::path path_;
  Leftover leftover_;
};

}  // namespace postflight
