#include "base/file.h"

#include "base/descriptor.h"
#include "base/interruption.h"
#include "base/truncation_guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace postflight {

namespace {

constexpr off_t kPage = 4096;
constexpr std::size_t kReadAtOnce = std::size_t{16} << 20;
constexpr std::size_t kFirstRead = std::size_t{1} << 20;
// Larger files are mapped in any case. Dumps are smaller, and reading as much
// takes a hundredth of a second.
constexpr off_t kReadWithoutGuard = off_t{64} << 20;

std::string name_of_user(uid_t user) {
  std::array<char, 4096> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr)
    return entry.pw_name;
  return fmt::format("user {}", user);
}

struct Opened {
  Descriptor descriptor;
  struct stat status;
};

Result<Opened> open_for_reading(const std::filesystem::path& path) {
  int number;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  } while (number < 0 && errno == EINTR);
  if (number < 0)
    return fail_to_open(path);
  Opened opened{Descriptor(number), {}};
  if (::fstat(number, &opened.status) != 0)
    return fail_errno(fmt::format("cannot stat {}", path.string()));
  if (S_ISDIR(opened.status.st_mode))
    return fail(ErrorKind::kIo,
                "cannot read {}: it is a folder; name a file inside it",
                path.string());
  if (S_ISCHR(opened.status.st_mode) || S_ISBLK(opened.status.st_mode))
    return fail(ErrorKind::kIo,
                "cannot read {}: it is a device; name a file or a pipe",
                path.string());
  return opened;
}

// Memory with all of its pages, as a fault for each would take longer than
// reading them; nullptr if there is none.
void* populated(off_t size) {
  void* const address =
      ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, /*offset=*/0);
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

// A job that runs in containers or as another user often writes files that only
// that user can read.
std::filesystem::path input_path(std::string_view argument) {
  return argument == "-" ? "/dev/stdin" : argument;
}

std::optional<std::string> permission_advice(
    const std::filesystem::path& path) {
  if (::access(path.c_str(), R_OK) == 0 || errno != EACCES)
    return std::nullopt;
  std::string what = "it";
  std::filesystem::path denied = path;
  struct stat info {};
  // A folder on the way that may not be entered hides what is below.
  while (::stat(denied.c_str(), &info) != 0) {
    if (errno != EACCES || !denied.has_relative_path())
      return std::nullopt;
    denied = denied.has_parent_path() ? denied.parent_path() : ".";
    what = "the folder " + denied.string();
  }
  constexpr mode_t kPermissions = 07777;
  const std::string owner = name_of_user(info.st_uid);
  return fmt::format(
      "permission denied: {} belongs to {} and has mode {:04o}; read it as {}, "
      "or as its owner chmod {} {}",
      what, owner, info.st_mode & kPermissions, owner,
      S_ISDIR(info.st_mode) ? "a+rx" : "a+r", denied.string());
}

tl::unexpected<Error> fail_to_open(const std::filesystem::path& path) {
  const int error = errno;
  const std::optional<std::string> advice =
      error == EACCES ? permission_advice(path) : std::nullopt;
  errno = error;
  if (!advice)
    return fail_errno(fmt::format("cannot open {}", path.string()));
  return fail(ErrorKind::kIo, "cannot open {}: {}", path.string(), *advice);
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path,
                                    const Limits& limits) {
  const Opened opened = TRY(open_for_reading(path));
  const int number = opened.descriptor.number();
  MappedFile file;
  // Files of /proc report size 0 and have to be read to find their size.
  if (S_ISREG(opened.status.st_mode) && opened.status.st_size > 0 &&
      (opened.status.st_size > kReadWithoutGuard ||
       TruncationGuard::exists())) {
    const auto size = static_cast<std::size_t>(opened.status.st_size);
    void* address =
        ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, number, /*offset=*/0);
    if (address != MAP_FAILED) {
      file.address_ = address;
      file.mapped_ = file.size_ = size;
      file.path_ = path;
      file.device_ = opened.status.st_dev;
      file.inode_ = opened.status.st_ino;
      file.watched_ = watch_mapping(address, size);
      return file;
    }
    if (errno != ENODEV)
      return fail_errno(fmt::format("cannot map {}", path.string()));
  }
  if (S_ISREG(opened.status.st_mode) && opened.status.st_size >= kPage &&
      opened.status.st_size <= kReadWithoutGuard)
    if (void* const room = populated(opened.status.st_size + 1)) {
      file.address_ = room;
      file.mapped_ = static_cast<std::size_t>(opened.status.st_size) + 1;
    }
  TRY(file.read_all(number, path, limits));
  return file;
}

Result<> MappedFile::read_all(int descriptor, const std::filesystem::path& path,
                              const Limits& limits) {
  for (;;) {
    if (size_ > limits.max_pipe_bytes)
      return fail(ErrorKind::kRefused,
                  "{} has more than {} bytes and cannot be mapped; save it as "
                  "a regular file, which is not read into memory",
                  path.string(), limits.max_pipe_bytes);
    if (size_ == mapped_ && !grow())
      return fail_errno(fmt::format("cannot read {}", path.string()));
    // Reading one byte past the cap shows whether the file is longer.
    const std::uint64_t until_cap = limits.max_pipe_bytes - size_;
    const std::size_t room = mapped_ - size_;
    const std::size_t wanted =
        std::min(until_cap < room ? until_cap + 1 : room, kReadAtOnce);
    TRY(check_interruption());
    const ssize_t count =
        ::read(descriptor, static_cast<std::byte*>(address_) + size_, wanted);
    if (count == 0)
      return {};
    if (count > 0)
      size_ += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      return fail_errno(fmt::format("cannot read {}", path.string()));
  }
}

Result<> MappedFile::copy_in(std::uint64_t offset, std::uint64_t size) const {
  if (watched_ == nullptr || size == 0 || offset >= size_)
    return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  const std::uint64_t last = offset + std::min(size, size_ - offset);
  const std::uint64_t end =
      std::min<std::uint64_t>(size_, (last + page - 1) / page * page);
  const Opened opened = TRY(open_for_reading(path_));
  void* const copy = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, /*offset=*/0);
  if (copy == MAP_FAILED)
    return fail_errno(fmt::format("cannot read {}", path_.string()));
  std::uint64_t at = begin;
  while (at < end) {
    const ssize_t count = ::pread(
        opened.descriptor.number(),
        static_cast<std::byte*>(copy) + (at - begin),
        std::min<std::uint64_t>(end - at, kReadAtOnce), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0 || interrupted())
      break;
    at += static_cast<std::uint64_t>(count);
  }
  if (interrupted()) {
    ::munmap(copy, end - begin);
    return check_interruption();
  }
  if (at < end || opened.status.st_dev != device_ ||
      opened.status.st_ino != inode_) {
    ::munmap(copy, end - begin);
    return fail(ErrorKind::kIo, "{}: it changed while it was read",
                path_.string());
  }
  if (::mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED,
               static_cast<std::byte*>(address_) + begin) == MAP_FAILED)
    return fail_errno(fmt::format("cannot read {}", path_.string()));
  return {};
}

bool MappedFile::grow() {
  const std::size_t wanted = mapped_ == 0 ? kFirstRead : mapped_ * 2;
  void* address = mapped_ == 0
                      ? ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, /*offset=*/0)
                      : ::mremap(address_, mapped_, wanted, MREMAP_MAYMOVE);
  if (address == MAP_FAILED)
    return false;
  address_ = address;
  mapped_ = wanted;
  return true;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  std::swap(watched_, other.watched_);
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  if (watched_ != nullptr)
    unwatch_mapping(watched_, path_);
  if (mapped_ > 0)
    ::munmap(address_, mapped_);
}

bool MappedFile::shrank() const {
  if (watched_ == nullptr)
    return false;
  if (watched_->lost_pages)
    return true;
  // The rest of its last page reads as zeros without a SIGBUS.
  struct stat status {};
  return ::stat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_ &&
         static_cast<std::uint64_t>(status.st_size) < size_;
}

}  // namespace postflight
