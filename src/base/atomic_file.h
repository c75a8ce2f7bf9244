#pragma once

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/leftovers.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace postflight {

// Whether an output may replace a file that exists: only if the user says so.
enum class Existing : bool { kRefuse, kReplace };

// A file that appears complete or not at all. It is written under a hidden name
// beside its target and renamed over it by commit(). Without a commit() the
// target is unchanged and the hidden file is removed.
class AtomicFile {
 public:
  // A target that is replaced keeps its permissions. A symlink is replaced
  // itself, never the file it points to. With kRefuse, a file that appears
  // before commit() is not replaced, either.
  static Result<AtomicFile> create(const std::filesystem::path& target,
                                   Existing existing = Existing::kRefuse);
  // Whether create() would accept the target, for a command that does a lot
  // before it writes.
  static Result<> check(const std::filesystem::path& target, Existing existing);

  Result<> write(Bytes bytes);
  // Passes on what is buffered, so that the hidden file can be read.
  Result<> flush();
  // The hidden name, for a library that writes to the file itself.
  const std::filesystem::path& temporary() const { return temporary_; }
  // Syncs the file and renames it over the target; durable across a crash.
  Result<> commit();

 private:
  AtomicFile(std::filesystem::path name, std::filesystem::path target,
             std::filesystem::path temporary, Existing existing);
  Result<> open(std::optional<mode_t> permissions);
  Result<> write_through(Bytes bytes);
  Result<> rename();
  // The error for a failed system call, after which the file is unusable.
  tl::unexpected<Error> broken();

  std::filesystem::path name_;       // the target as the caller named it
  std::filesystem::path target_;     // the same, absolute
  std::filesystem::path temporary_;  // beside it
  Existing existing_;
  Leftover leftover_;
  Descriptor descriptor_;
  std::vector<std::byte> buffer_;
};

}  // namespace postflight
