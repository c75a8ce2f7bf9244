#pragma once

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/leftovers.h"

namespace postflight {

// A folder that appears complete or not at all: it is filled under a hidden
// name beside its target, which commit() replaces in one step. Without a
// commit() the target is unchanged and the hidden folder is removed.
class AtomicFolder {
 public:
  static Result<AtomicFolder> create(const std::filesystem::path& target,
                                     Existing existing = Existing::kRefuse);
  static Result<> check(const std::filesystem::path& target, Existing existing);

  // Where its files go until then. They are synced by whoever writes them.
  const std::filesystem::path& path() const { return temporary_; }
  Result<> commit();

 private:
  AtomicFolder(std::filesystem::path target, std::filesystem::path temporary,
               Existing existing);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  Existing existing_;
  Leftover leftover_;
};

}  // namespace postflight
