#include "profile/agent/memory.h"

#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/agent/phase_layout.h"

namespace postflight {

char* write_number(char* to, int number) {
  char digits[16];
  int count = 0;
  for (; number != 0; number /= 10)
    digits[count++] = static_cast<char>('0' + number % 10);
  while (count != 0)
    *to++ = digits[--count];
  return to;
}

std::byte* map_process_file(const char* folder, const char* suffix,
                            std::size_t size) {
  char path[kMostFolderBytes + 64];
  char* to = path;
  const std::size_t length = std::strlen(folder);
  std::memcpy(to, folder, length);
  to += length;
  *to++ = '/';
  to = write_number(to, ::getpid());
  std::memcpy(to, suffix, std::strlen(suffix) + 1);
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return nullptr;
  // Allocate all of it now: if the disk became full later, the next write would
  // kill the program, and a page fault costs more than the whole handler.
  void* memory = MAP_FAILED;
  if (::posix_fallocate(file, 0, static_cast<off_t>(size)) == 0)
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

std::byte* reserve_record(RingHeader& ring, std::byte* data,
                          std::uint32_t size) {
  std::uint64_t head = ring.head.load();
  while (true) {
    const std::uint64_t left = kRingBytes - head % kRingBytes;
    const std::uint64_t filler = left < size ? left : 0;
    const std::uint64_t end = head + filler + size;
    if (end - ring.tail.load() > kRingBytes) {
      ring.lost.fetch_add(1);
      return nullptr;
    }
    if (!ring.head.compare_exchange_weak(head, end))
      continue;
    if (filler != 0) {
      auto* const skip =
          reinterpret_cast<RingRecord*>(data + head % kRingBytes);
      skip->kind = 0;
      skip->size.store(static_cast<std::uint32_t>(filler),
                       std::memory_order_release);
      head += filler;
    }
    return data + head % kRingBytes;
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
