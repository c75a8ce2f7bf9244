#include "base/truncation_guard.h"

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/fork_lock.h"

namespace postflight {
namespace {

// The handler walks this list while other threads add and remove mappings, so
// nodes are reused but never freed; there are at most as many as files were
// mapped at one time.
struct Block {
  std::array<WatchedMapping, 64> mappings;
  std::unique_ptr<Block> owner_of_next;
  std::atomic<Block*> next = nullptr;
};

struct Registry {
  std::mutex mutex;
  Block first;
  Block* last = &first;
  std::size_t used_of_last = 0;
  std::vector<WatchedMapping*> free;
  std::vector<std::filesystem::path> shrunk;
};

Registry& registry() {
  static Registry made;
  hold_during_forks(made.mutex, /*rank=*/2);
  return made;
}

// Needed by the handler, so initialised before it is installed.
std::atomic<const Block*> watched = nullptr;
std::atomic<std::uintptr_t> page_size = 4096;
struct sigaction otherwise;
std::atomic<int> guards = 0;

const WatchedMapping* mapping_at(std::uintptr_t address) {
  for (const Block* block = watched.load(); block != nullptr;
       block = block->next.load())
    for (const WatchedMapping& mapping : block->mappings) {
      const std::uintptr_t begin = mapping.begin.load();
      if (begin != 0 && address >= begin && address < mapping.end.load())
        return &mapping;
    }
  return nullptr;
}

// Maps zeros from the faulting page to the end of the mapping: everything after
// a missing page is missing, too.
void handle(int, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const WatchedMapping* const mapping =
      info->si_code > 0 ? mapping_at(address) : nullptr;
  const std::uintptr_t page = address / page_size * page_size;
  if (mapping == nullptr ||
      ::mmap(reinterpret_cast<void*>(page), mapping->end - page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    ::sigaction(SIGBUS, &otherwise, nullptr);  // the fault is raised again
  else
    const_cast<WatchedMapping*>(mapping)->lost_pages = true;
  errno = error;
}

}  // namespace

WatchedMapping* watch_mapping(const void* address, std::size_t size) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  WatchedMapping* mapping = nullptr;
  if (!all.free.empty()) {
    mapping = all.free.back();
    all.free.pop_back();
  } else {
    if (all.used_of_last == all.last->mappings.size()) {
      all.last->owner_of_next = std::make_unique<Block>();
      all.last->next = all.last->owner_of_next.get();
      all.last = all.last->owner_of_next.get();
      all.used_of_last = 0;
    }
    mapping = &all.last->mappings[all.used_of_last++];
  }
  mapping->lost_pages = false;
  mapping->end = reinterpret_cast<std::uintptr_t>(address) + size;
  mapping->begin = reinterpret_cast<std::uintptr_t>(address);
  return mapping;
}

void unwatch_mapping(WatchedMapping* mapping,
                     const std::filesystem::path& path) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  mapping->begin = 0;
  all.free.push_back(mapping);
  if (mapping->lost_pages)
    all.shrunk.push_back(path);
}

Result<TruncationGuard> TruncationGuard::start() {
  page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  watched = &registry().first;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, nullptr, &otherwise) != 0 ||
      ::sigaction(SIGBUS, &action, nullptr) != 0)
    return fail_errno("cannot handle SIGBUS");
  ++guards;
  return TruncationGuard(otherwise);
}

bool TruncationGuard::exists() {
  return guards > 0;
}

TruncationGuard::TruncationGuard(TruncationGuard&& other) noexcept
    : before_(other.before_),
      moved_from_(std::exchange(other.moved_from_, true)) {}

TruncationGuard::~TruncationGuard() {
  if (moved_from_)
    return;
  ::sigaction(SIGBUS, &before_, nullptr);
  --guards;
}

std::vector<std::filesystem::path> TruncationGuard::shrunk_files() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.shrunk;
}

}  // namespace postflight
