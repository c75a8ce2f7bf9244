#include "base/atomic_folder.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> folder_exists(const fs::path& target) {
  return fail(ErrorKind::kUsage,
              "{} exists; name another folder, or replace it with --force",
              target.string());
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // If folders cannot be synced, only durability across a crash is lost.
  if (opened.is_open())
    static_cast<void>(::fsync(opened.number()));
}

}  // namespace

AtomicFolder::AtomicFolder(fs::path target, fs::path temporary,
                           Existing existing)
    : target_(std::move(target)),
      temporary_(std::move(temporary)),
      existing_(existing),
      leftover_(temporary_) {}

Result<> AtomicFolder::check(const fs::path& target, Existing existing) {
  std::error_code none;
  const fs::file_status status = fs::symlink_status(target, none);
  if (!fs::exists(status))
    return {};
  if (!fs::is_directory(status))
    return fail(ErrorKind::kUsage,
                "{} exists and is not a folder; name another one",
                target.string());
  if (existing == Existing::kRefuse && !fs::is_empty(target, none))
    return folder_exists(target);
  return {};
}

Result<AtomicFolder> AtomicFolder::create(const fs::path& target,
                                          Existing existing) {
  TRY(check(target, existing));
  std::error_code failed;
  fs::path absolute = fs::absolute(target, failed).lexically_normal();
  if (!absolute.has_filename())  // "out/"
    absolute = absolute.parent_path();
  AtomicFolder folder(absolute,
                      absolute.parent_path() / ("." + Leftovers::unique_name()),
                      existing);
  if (failed || ::mkdir(folder.temporary_.c_str(), 0777) != 0) {
    const std::error_code reason =
        failed ? failed : std::error_code(errno, std::generic_category());
    folder.leftover_.release();
    return fail(ErrorKind::kIo, "cannot create a folder in {}: {}",
                absolute.parent_path().string(), reason.message());
  }
  return folder;
}

Result<> AtomicFolder::commit() {
  sync_folder(temporary_);
  std::error_code none;
  const bool there = fs::exists(target_, none);
  const bool empty = there && fs::is_empty(target_, none);
  if (there && !empty && existing_ == Existing::kRefuse)
    return folder_exists(target_);
  if (there && !empty) {
    // The old one and the new one change places, then the old one is removed
    // with the handle.
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                    RENAME_EXCHANGE) != 0)
      return fail_errno(
          fmt::format("cannot replace {} in one step", target_.string()));
    sync_folder(target_.parent_path());
    return leftover_.remove();
  }
  // Over an empty folder, or to a new name.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    return fail_errno(fmt::format("cannot create {}", target_.string()));
  leftover_.release();
  sync_folder(target_.parent_path());
  return {};
}

}  // namespace postflight
