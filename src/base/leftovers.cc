#include "base/leftovers.h"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <sys/random.h>
#include <unistd.h>

#include "base/fork_lock.h"

namespace postflight {

struct Leftovers::Entry {
  std::filesystem::path path;
  pid_t owner;
  Entry* previous = nullptr;
  Entry* next = nullptr;
};

constinit std::mutex Leftovers::mutex_;
constinit Leftovers::Entry* Leftovers::first_ = nullptr;

void Leftovers::add(Entry& entry) {
  hold_during_forks(mutex_, /*rank=*/1);
  const std::lock_guard lock(mutex_);
  entry.next = first_;
  if (first_ != nullptr)
    first_->previous = &entry;
  first_ = &entry;
}

void Leftovers::drop(Entry& entry) {
  const std::lock_guard lock(mutex_);
  (entry.previous != nullptr ? entry.previous->next : first_) = entry.next;
  if (entry.next != nullptr)
    entry.next->previous = entry.previous;
}

void Leftovers::remove_all() {
  const std::lock_guard lock(mutex_);
  for (const Entry* entry = first_; entry != nullptr; entry = entry->next) {
    std::error_code ignored;
    if (entry->owner == ::getpid())
      std::filesystem::remove_all(entry->path, ignored);
  }
}

std::string Leftovers::unique_name() {
  std::uint64_t random = 0;
  while (::getrandom(&random, sizeof(random), 0) < 0 && errno == EINTR) {
  }
  return fmt::format("postflight-{}-{:016x}", ::getpid(), random);
}

Leftover::Leftover(const std::filesystem::path& path)
    : entry_(std::make_unique<Leftovers::Entry>()) {
  // Absolute, as the process may change its working directory.
  std::error_code failed;
  entry_->path = std::filesystem::absolute(path, failed);
  if (failed)
    entry_->path = path;
  entry_->owner = ::getpid();
  Leftovers::add(*entry_);
}

Leftover::Leftover(Leftover&& other) noexcept = default;

Leftover& Leftover::operator=(Leftover&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

Leftover::~Leftover() {
  static_cast<void>(remove());
}

Result<> Leftover::remove() {
  if (entry_ == nullptr)
    return {};
  // Unregistered only once removed: an interruption midway completes it.
  std::error_code failed;
  const bool is_ours = entry_->owner == ::getpid();
  if (is_ours)
    std::filesystem::remove_all(entry_->path, failed);
  const std::filesystem::path path = entry_->path;
  release();
  if (failed)
    return fail(ErrorKind::kIo, "cannot remove {}: {}", path.string(),
                failed.message());
  return {};
}

void Leftover::release() {
  if (entry_ == nullptr)
    return;
  Leftovers::drop(*entry_);
  entry_.reset();
}

}  // namespace postflight
