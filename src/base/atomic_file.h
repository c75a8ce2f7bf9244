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

// A file that appears whole or not at all. It is written under a hidden name
// beside its target and takes the target's place in commit(); until then, and
// if it goes without one, whatever was at the target stays as it was.
class AtomicFile {
 public:
  // An existing target keeps its permissions, and a link stays a link: the
  // file it points at is the one replaced.
  static Result<AtomicFile> create(const std::filesystem::path& target);

  Result<> write(Bytes bytes);
  // The hidden name, for a library that writes to the file itself.
  const std::filesystem::path& temporary() const { return temporary_; }
  // Puts the file in place, safe from a crash of the machine.
  Result<> commit();

 private:
  AtomicFile(std::filesystem::path name, std::filesystem::path target,
             std::filesystem::path temporary);
  Result<> open(std::optional<mode_t> permissions);
  Result<> flush();
  Result<> write_through(Bytes bytes);
  // The error for a failed system call, after which the file is unusable.
  tl::unexpected<Error> broken();

  std::filesystem::path name_;       // as the caller calls the target
  std::filesystem::path target_;     // with links resolved
  std::filesystem::path temporary_;  // beside it
  Leftover leftover_;
  Descriptor descriptor_;
  std::vector<std::byte> buffer_;
};

}  // namespace postflight
