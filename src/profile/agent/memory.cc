#include "profile/agent/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/agent/phase_layout.h"

namespace postflight {

bool Arena::open(const char* path, std::uint64_t token) {
  path_ = path;
  const int file = ::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0)
    return false;
  void* const memory = ::mmap(nullptr, kArenaHeaderBytes,
                              PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED)
    return false;
  auto* const header = static_cast<ArenaHeader*>(memory);
  if (header->magic != kArenaMagic || header->token != token) {
    ::munmap(memory, kArenaHeaderBytes);
    return false;
  }
  header_ = header;
  ring_bytes_ = header->ring_bytes;
  return true;
}

namespace {

// Many processes may begin before the engine has made more slots. Returns
// kMostSlots if it cannot be made.
std::uint32_t add_slot(ArenaHeader& header, int file, std::size_t size) {
  // The program would get a signal.
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
    return kMostSlots;
  for (std::uint32_t slot = 0; slot < kMostSlots; ++slot) {
    auto expected = static_cast<std::uint32_t>(SlotUse::kAbsent);
    if (!header.uses[slot].compare_exchange_strong(
            expected, static_cast<std::uint32_t>(SlotUse::kTaken)))
      continue;
    if (::posix_fallocate(file,
                          static_cast<off_t>(kArenaHeaderBytes + slot * size),
                          static_cast<off_t>(size)) == 0)
      return slot;
    header.uses[slot].store(static_cast<std::uint32_t>(SlotUse::kAbsent));
    return kMostSlots;
  }
  return kMostSlots;
}

}  // namespace

bool Arena::claim(std::uint32_t parent_claim, std::int32_t parent_tid) {
  if (slot_ != nullptr)
    ::munmap(slot_, kRingDataOffset + ring_bytes_);
  slot_ = nullptr;
  constexpr auto kReady = static_cast<std::uint32_t>(SlotUse::kReady);
  std::uint32_t slot = 0;
  for (; slot < kMostSlots; ++slot) {
    std::uint32_t expected = kReady;
    if (header_->uses[slot].load(std::memory_order_relaxed) == kReady &&
        header_->uses[slot].compare_exchange_strong(
            expected, static_cast<std::uint32_t>(SlotUse::kTaken)))
      break;
  }
  const std::size_t size = kRingDataOffset + ring_bytes_;
  const int file = ::open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (slot == kMostSlots) {
    slot = file < 0 ? kMostSlots : add_slot(*header_, file, size);
    if (slot == kMostSlots) {
      if (file >= 0)
        ::close(file);
      return false;
    }
  }
  void* const memory =
      file < 0 ? MAP_FAILED
               : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                        static_cast<off_t>(kArenaHeaderBytes + slot * size));
  if (file >= 0)
    ::close(file);
  if (memory == MAP_FAILED) {
    header_->uses[slot].store(kReady);
    return false;
  }
  slot_ = static_cast<std::byte*>(memory);
  number_ = slot;
  RingHeader& ring = *this->ring();
  ring.claim = header_->claims.fetch_add(1) + 1;
  ring.pid = ::getpid();
  struct stat inside;
  if (::stat("/proc/self/ns/pid", &inside) == 0)
    ring.pid_namespace = inside.st_ino;
  ring.parent_claim = parent_claim;
  ring.parent_tid = parent_tid;
  return true;
}

void Arena::publish() {
  header_->uses[number_].store(static_cast<std::uint32_t>(SlotUse::kClaimed),
                               std::memory_order_release);
}

std::byte* Arena::reserve_record(std::uint32_t size) {
  RingHeader& header = *ring();
  std::byte* const data = slot_ + kRingDataOffset;
  std::uint64_t head = header.head.load();
  while (true) {
    const std::uint64_t left = ring_bytes_ - head % ring_bytes_;
    const std::uint64_t filler = left < size ? left : 0;
    const std::uint64_t end = head + filler + size;
    if (end - header.tail.load() > ring_bytes_) {
      header.lost.fetch_add(1);
      return nullptr;
    }
    if (!header.head.compare_exchange_weak(head, end))
      continue;
    if (filler != 0) {
      auto* const skip =
          reinterpret_cast<RingRecord*>(data + head % ring_bytes_);
      skip->kind = 0;
      skip->size.store(static_cast<std::uint32_t>(filler),
                       std::memory_order_release);
      head += filler;
    }
    return data + head % ring_bytes_;
  }
}

std::uint16_t copy_phases(const std::byte* table, std::int32_t thread,
                          std::uint32_t& place, std::uint32_t* out) {
  using Table = PhaseTableLayout;
  if (table == nullptr)
    return 0;
  const auto tid = static_cast<std::uint32_t>(thread);
  const auto phase_word = [table](std::size_t offset) {
    return __atomic_load_n(
        reinterpret_cast<const std::uint32_t*>(table + offset),
        __ATOMIC_ACQUIRE);
  };
  const auto slot_at = [](std::uint32_t slot) {
    return Table::kHeaderBytes + slot * Table::kSlotBytes;
  };
  const std::uint32_t used = phase_word(Table::kUsedSlotsOffset);
  if (used > Table::kSlots)
    return 0;
  if (place >= used || phase_word(slot_at(place)) != tid) {
    place = 0;
    while (place < used && phase_word(slot_at(place)) != tid)
      ++place;
    if (place >= used)
      return 0;
  }
  const std::size_t at = slot_at(place);
  const std::uint32_t depth = phase_word(at + 8);
  if (phase_word(at + 4) % 2 != 0 || depth > Table::kMostPhases)
    return 0;
  for (std::uint32_t i = 0; i < depth; ++i)
    out[i] = phase_word(at + 12 + std::size_t{4} * i);
  return static_cast<std::uint16_t>(depth);
}

}  // namespace postflight
