#include "profile/engine/agent_arena.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <fmt/format.h>

namespace postflight {
namespace {

// So many slots are ready at first, and later as many as were claimed before:
// most programs never fork. Native ones are large.
constexpr std::uint32_t kFirstReady = 2;
constexpr std::uint32_t kMostReady = 16;
constexpr std::uint32_t kMostNativeReady = 8;
constexpr std::uint32_t kMadeAtOnce = 4;

// A file system in memory, if there is one that we may write to.
std::filesystem::path memory_folder() {
  for (const char* const path : {"/dev/shm", "/run/shm"}) {
    struct statfs system;
    if (::statfs(path, &system) == 0 && system.f_type == TMPFS_MAGIC &&
        ::access(path, W_OK | X_OK) == 0)
      return path;
  }
  return {};
}

std::atomic<std::uint32_t>& use_of(ArenaHeader& header, std::uint32_t slot) {
  return header.uses[slot];
}

}  // namespace

AgentArena::AgentArena(TemporaryFolder folder)
    : folder_(std::move(folder)), seen_(kMostSlots) {}

AgentArena::AgentArena(AgentArena&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      memory_(std::exchange(other.memory_, nullptr)),
      ring_bytes_(other.ring_bytes_),
      claims_(other.claims_),
      seen_(std::move(other.seen_)) {}

AgentArena::~AgentArena() {
  if (memory_ == nullptr)
    return;
  header().stop.store(1);
  ::munmap(memory_, kArenaHeaderBytes);
}

ArenaHeader& AgentArena::header() const {
  return *reinterpret_cast<ArenaHeader*>(memory_);
}

Result<AgentArena> AgentArena::create(std::chrono::nanoseconds interval,
                                      bool native) {
  const std::filesystem::path memory = memory_folder();
  Result<TemporaryFolder> folder = TemporaryFolder::create(memory);
  if (!folder && !memory.empty())
    folder = TemporaryFolder::create();
  AgentArena arena(TRY(std::move(folder)));
  arena.path_ = arena.folder_.path() / "rings";
  arena.file_ = Descriptor(
      ::open(arena.path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  arena.ring_bytes_ = native ? kNativeRingBytes : kRingBytes;
  // All of it is allocated before it is used: a program that writes to a hole
  // when the file system is full would be killed.
  errno = !arena.file_.is_open()
              ? errno
              : ::posix_fallocate(arena.file_.number(), 0, kArenaHeaderBytes);
  if (errno != 0)
    return fail_errno(fmt::format("cannot create {}", arena.path_.native()));
  void* const memory_map =
      ::mmap(nullptr, kArenaHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
             arena.file_.number(), 0);
  if (memory_map == MAP_FAILED)
    return fail_errno(fmt::format("cannot map {}", arena.path_.native()));
  arena.memory_ = static_cast<std::byte*>(memory_map);
  std::random_device random;
  ArenaHeader& header = arena.header();
  header.magic = kArenaMagic;
  header.token = std::uint64_t{random()} << 31 ^ random();
  header.ring_bytes = arena.ring_bytes_;
  header.interval_ns = static_cast<std::uint64_t>(interval.count());
  for (std::uint32_t i = 0; i < kFirstReady; ++i)
    arena.keep_ready();
  return arena;
}

std::string AgentArena::setting() const {
  return fmt::format("{}:{}:{}", header().interval_ns, header().token,
                     path_.native());
}

void AgentArena::keep_ready() {
  std::uint32_t ready = 0;
  for (const std::atomic<std::uint32_t>& use : header().uses)
    ready += use.load() == static_cast<std::uint32_t>(SlotUse::kReady) ? 1 : 0;
  const std::uint32_t most =
      std::min(is_native() ? kMostNativeReady : kMostReady,
               std::max(kFirstReady, 2 * claims_));
  const std::uint32_t at_once =
      ready < kFirstReady || is_native() ? 1 : kMadeAtOnce;
  // Processes may make slots, too.
  std::uint32_t made = 0;
  for (std::uint32_t slot = 0;
       slot < kMostSlots && made < at_once && ready + made < most; ++slot) {
    auto expected = static_cast<std::uint32_t>(SlotUse::kAbsent);
    if (!use_of(header(), slot)
             .compare_exchange_strong(
                 expected, static_cast<std::uint32_t>(SlotUse::kTaken)))
      continue;
    const std::size_t at = kArenaHeaderBytes + slot * slot_bytes();
    const bool fits = ::posix_fallocate(file_.number(), static_cast<off_t>(at),
                                        static_cast<off_t>(slot_bytes())) == 0;
    use_of(header(), slot)
        .store(static_cast<std::uint32_t>(fits ? SlotUse::kReady
                                               : SlotUse::kAbsent));
    if (!fits)
      return;
    ++made;
  }
}

Result<AgentRing> AgentArena::ring(std::uint32_t slot) const {
  return AgentRing::map(file_.number(), kArenaHeaderBytes + slot * slot_bytes(),
                        ring_bytes_);
}

std::vector<AgentClaim> AgentArena::take_claims() {
  std::vector<AgentClaim> found;
  const std::uint32_t claims = header().claims.load();
  if (claims == claims_)
    return found;
  for (std::uint32_t slot = 0; slot < kMostSlots; ++slot) {
    if (seen_[slot] != 0 ||
        use_of(header(), slot).load(std::memory_order_acquire) !=
            static_cast<std::uint32_t>(SlotUse::kClaimed))
      continue;
    const Result<AgentRing> its_ring = ring(slot);
    if (!its_ring)
      continue;
    AgentClaim claim = its_ring->claim();
    claim.slot = slot;
    seen_[slot] = claim.claim;
    ++claims_;
    found.push_back(claim);
  }
  return found;
}

void AgentArena::release(std::uint32_t slot) {
  const std::size_t at = kArenaHeaderBytes + slot * slot_bytes();
  void* const memory =
      ::mmap(nullptr, slot_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
             file_.number(), static_cast<off_t>(at));
  if (memory == MAP_FAILED)
    return;
  auto* const bytes = static_cast<std::byte*>(memory);
  const auto* const ring = reinterpret_cast<const RingHeader*>(bytes);
  // What was drained is zero again.
  const std::uint64_t head = ring->head.load();
  const std::uint64_t tail = ring->tail.load();
  if (head != tail)
    std::memset(bytes + kRingDataOffset, 0,
                head < ring_bytes_ ? head : ring_bytes_);
  std::memset(bytes, 0, kSlotPhasesOffset + PhaseTableLayout::kNamesOffset);
  ::munmap(memory, slot_bytes());
  seen_[slot] = 0;
  use_of(header(), slot).store(static_cast<std::uint32_t>(SlotUse::kReady));
}

}  // namespace postflight
