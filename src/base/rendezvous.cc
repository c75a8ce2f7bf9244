#include "base/rendezvous.h"

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/interruption.h"
#include "base/units.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace postflight {

namespace {

// PATH_MAX is 4 KiB, and longer errors are not worth passing on.
constexpr std::uint64_t kMaxValue = 64 << 10;
// Exponential backoff: thousands of ranks may poll one file server.
constexpr Clock::Duration kFirstPause = std::chrono::milliseconds(5);
constexpr Clock::Duration kLongestPause = std::chrono::milliseconds(500);

Result<std::string> read_value(const std::filesystem::path& path) {
  const MappedFile file = TRY(MappedFile::open(path));
  const std::string_view value = as_text(file.bytes());
  if (value.size() > kMaxValue)
    return fail(ErrorKind::kRefused,
                "{} is not a rendezvous file: it has {} bytes", path.string(),
                value.size());
  return std::string(value);
}

}  // namespace

FolderRendezvous::FolderRendezvous(std::filesystem::path folder, Clock& clock)
    : folder_(std::move(folder)), clock_(clock) {}

Result<> FolderRendezvous::publish(std::string_view key,
                                   std::string_view value) {
  AtomicFile file = TRY(AtomicFile::create(folder_ / key));
  TRY(file.write(as_bytes(value)));
  return file.commit();
}

Result<std::string> FolderRendezvous::await(std::string_view key,
                                            Clock::Duration limit) {
  const std::filesystem::path path = folder_ / key;
  const Clock::TimePoint deadline = clock_.now() + limit;
  Clock::Duration pause = kFirstPause;
  for (;;) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
      return read_value(path);
    const Clock::Duration left = deadline - clock_.now();
    TRY(check_interruption());
    if (left <= Clock::Duration::zero())
      return fail(ErrorKind::kIo,
                  "{} did not appear within {}; the process that writes it may "
                  "have exited, or uses a different folder",
                  path.string(), human_duration(limit));
    clock_.wait(std::min(pause, left));
    pause = std::min(pause * 2, kLongestPause);
  }
}

void FolderRendezvous::withdraw(std::string_view key) {
  std::error_code ignored;
  std::filesystem::remove(folder_ / key, ignored);
}

}  // namespace postflight
