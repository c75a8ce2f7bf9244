#include "stream/file_stream.h"

#include <cerrno>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace postflight {
namespace {

bool would_block(int code) {
  return code == EAGAIN || code == EWOULDBLOCK;
}

}  // namespace

FileSource::FileSource(Descriptor descriptor, std::string name)
    : descriptor_(std::move(descriptor)), name_(std::move(name)) {
  struct stat status;
  if (::fstat(descriptor_.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return;
  seekable_ = true;
  size_ = static_cast<std::uint64_t>(status.st_size);
  // Standard input may have been partly read by the parent process.
  const off_t now = ::lseek(descriptor_.number(), 0, SEEK_CUR);
  position_ = now > 0 ? static_cast<std::uint64_t>(now) : 0;
}

Result<FileSource> FileSource::open(const std::filesystem::path& path) {
  int number;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  } while (number < 0 && errno == EINTR);
  if (number < 0)
    return fail_to_open(path);
  return FileSource(Descriptor(number), path.string());
}

Result<Taken> FileSource::read(std::span<std::byte> to) {
  for (;;) {
    const ssize_t count = ::read(descriptor_.number(), to.data(), to.size());
    if (count == 0)
      return Taken{.at_end = true};
    if (count > 0) {
      position_ += static_cast<std::uint64_t>(count);
      return Taken{.count = static_cast<std::size_t>(count)};
    }
    if (would_block(errno))
      return Taken{};
    if (errno != EINTR)
      return fail_errno(
          fmt::format("cannot read {} at byte {}", name_, position_));
  }
}

Result<> FileSource::seek(std::uint64_t position) {
  if (!seekable_)
    return Source::seek(position);
  if (position > std::numeric_limits<off_t>::max() ||
      ::lseek(descriptor_.number(), static_cast<off_t>(position), SEEK_SET) < 0)
    return fail(ErrorKind::kIo, "cannot seek to byte {} of {}", position,
                name_);
  position_ = position;
  return {};
}

void FileSource::wait() const {
  pollfd waiting{.fd = descriptor_.number(), .events = POLLIN, .revents = 0};
  ::poll(&waiting, 1, /*timeout=*/-1);
}

FileSink::FileSink(Descriptor descriptor, std::string name)
    : descriptor_(std::move(descriptor)), name_(std::move(name)) {}

Result<> FileSink::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      position_ += static_cast<std::uint64_t>(count);
    } else if (would_block(errno)) {
      pollfd waiting{
          .fd = descriptor_.number(), .events = POLLOUT, .revents = 0};
      ::poll(&waiting, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      return fail_errno(fmt::format("cannot write {}", name_));
    }
  }
  return {};
}

Result<> AtomicFileSink::write(Bytes bytes) {
  TRY(file_.write(bytes));
  position_ += bytes.size();
  return {};
}

}  // namespace postflight
