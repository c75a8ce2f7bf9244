#include "base/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace postflight {

namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

tl::unexpected<Error> refused(const std::filesystem::path& target) {
  return fail(ErrorKind::kUsage,
              "{} exists; name another file, or replace it with --force",
              target.string());
}

Result<> check_target(const std::filesystem::path& target,
                      const struct stat& existing, Existing policy) {
  if (S_ISDIR(existing.st_mode))
    return fail(ErrorKind::kIo,
                "cannot write {}: it is a folder; name a file inside it",
                target.string());
  if (!S_ISREG(existing.st_mode))
    return fail(ErrorKind::kIo,
                "cannot write {}: it is not a regular file and cannot be "
                "replaced; choose another name",
                target.string());
  if (policy == Existing::kRefuse)
    return refused(target);
  return {};
}

// A link that somebody else made may lead anywhere, so that it counts as the
// file that exists: it is replaced, not followed.
Result<> check_link(const std::filesystem::path& target, Existing policy) {
  struct stat behind;
  if (::stat(target.c_str(), &behind) == 0 && !S_ISREG(behind.st_mode))
    return check_target(target, behind, policy);
  if (policy == Existing::kRefuse)
    return fail(ErrorKind::kUsage,
                "{} is a symlink; name the file itself, or replace the link "
                "with --force",
                target.string());
  return {};
}

Result<> check_permission(const std::filesystem::path& target) {
  // rename() does not need write permission for the file it replaces; we
  // require it.
  if (::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    return fail_errno(fmt::format("cannot write {}", target.string()));
  return {};
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path name, std::filesystem::path target,
                       std::filesystem::path temporary, Existing existing)
    : name_(std::move(name)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      existing_(existing),
      leftover_(temporary_) {
  buffer_.reserve(kBufferSize);
}

Result<> AtomicFile::check(const std::filesystem::path& target,
                           Existing existing) {
  if (!target.has_filename())
    return fail(ErrorKind::kIo, "cannot write \"{}\": it does not name a file",
                target.string());
  struct stat status;
  if (::lstat(target.c_str(), &status) != 0)
    return {};
  if (S_ISLNK(status.st_mode))
    return check_link(target, existing);
  TRY(check_target(target, status, existing));
  return check_permission(target);
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& target,
                                      Existing existing) {
  TRY(check(target, existing));
  struct stat status;
  std::optional<mode_t> permissions;
  if (::lstat(target.c_str(), &status) == 0 && !S_ISLNK(status.st_mode))
    permissions = status.st_mode & 0777;
  std::error_code failed;
  const std::filesystem::path resolved =
      std::filesystem::absolute(target, failed);
  if (failed)
    return fail(ErrorKind::kIo, "cannot write {}: {}", target.string(),
                failed.message());
  AtomicFile file(target, resolved,
                  folder_of(resolved) / ("." + Leftovers::unique_name()),
                  existing);
  TRY(file.open(permissions));
  return file;
}

Result<> AtomicFile::open(std::optional<mode_t> permissions) {
  // A private file's replacement must not be readable by others in the
  // meantime.
  const mode_t first_mode = permissions ? 0600 : 0666;
  descriptor_ = Descriptor(::open(
      temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, first_mode));
  if (!descriptor_.is_open()) {
    const int code = errno;
    leftover_.release();
    std::error_code unknown;
    if (code == ENOENT &&
        !std::filesystem::is_directory(temporary_.parent_path(), unknown))
      return fail(ErrorKind::kIo,
                  "cannot write {}: the folder {} does not exist; create it "
                  "first",
                  name_.string(), folder_of(target_).string());
    errno = code;
    return broken();
  }
  if (permissions && ::fchmod(descriptor_.number(), *permissions) != 0)
    return broken();
  return {};
}

Result<> AtomicFile::write(Bytes bytes) {
  if (bytes.size() > kBufferSize - buffer_.size())
    TRY(flush());
  if (bytes.size() >= kBufferSize)
    return write_through(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<> AtomicFile::flush() {
  TRY(write_through(buffer_));
  buffer_.clear();
  return {};
}

Result<> AtomicFile::write_through(Bytes bytes) {
  if (!descriptor_.is_open())
    return fail(
        ErrorKind::kIo,
        "cannot write {}: already committed, or an earlier write failed",
        name_.string());
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (count >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return broken();
  }
  return {};
}

Result<> AtomicFile::commit() {
  TRY(flush());
  if (::fsync(descriptor_.number()) != 0)
    return broken();
  descriptor_ = Descriptor();
  TRY(rename());
  leftover_.release();
  // The file is complete by now. If the folder cannot be opened, or the file
  // system cannot sync folders (EINVAL), only crash durability is lost.
  const Descriptor folder(
      ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open() && ::fsync(folder.number()) != 0 && errno != EINVAL)
    return broken();
  return {};
}

Result<> AtomicFile::rename() {
  if (existing_ == Existing::kRefuse) {
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                    RENAME_NOREPLACE) == 0)
      return {};
    if (errno == EEXIST)
      return refused(name_);
    // Some file systems, such as NFS, cannot do that.
    if (errno != EINVAL && errno != ENOSYS)
      return broken();
    struct stat status;
    if (::lstat(target_.c_str(), &status) == 0)
      return refused(name_);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    return broken();
  return {};
}

tl::unexpected<Error> AtomicFile::broken() {
  const int code = errno;
  descriptor_ = Descriptor();
  const std::string reason = std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT)
    return fail(ErrorKind::kIo,
                "cannot write {}: {}; free some space there or name a file on "
                "another disk",
                name_.string(), reason);
  return fail(ErrorKind::kIo, "cannot write {}: {}", name_.string(), reason);
}

}  // namespace postflight
