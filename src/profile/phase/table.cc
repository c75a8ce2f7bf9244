#include "profile/phase/table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/descriptor.h"

namespace postflight {
namespace {

using Table = PhaseTableLayout;

constexpr std::string_view kMagic{"PFPHASE\x02", 8};
constexpr std::size_t kUsedOffset = Table::kUsedBytesOffset;
constexpr std::size_t kNamesOffset = Table::kNamesOffset;
constexpr std::uint32_t kNoSlot = ~0U;
// Longer names are truncated, so that they do not fill the table.
constexpr std::size_t kMostName = 200;

constexpr std::size_t slot_offset(std::uint32_t slot) {
  return Table::kHeaderBytes + slot * Table::kSlotBytes;
}

std::uint32_t load(const std::byte* memory, std::size_t offset) {
  const auto* const at =
      reinterpret_cast<const std::uint32_t*>(memory + offset);
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

}  // namespace

std::filesystem::path phase_table_path(const std::filesystem::path& folder,
                                       pid_t pid) {
  return folder / fmt::format("{}.phases", pid);
}

PhaseTable::PhaseTable() : mutex_(std::make_unique<std::mutex>()) {}

PhaseTable::PhaseTable(PhaseTable&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      mutex_(std::move(other.mutex_)),
      names_(std::move(other.names_)),
      threads_(std::move(other.threads_)) {}

PhaseTable::~PhaseTable() {
  if (memory_ != nullptr)
    ::munmap(memory_, Table::kBytes);
}

Result<PhaseTable> PhaseTable::create(const std::filesystem::path& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open())
    return fail_errno(fmt::format("cannot create {}", path.native()));
  // Allocate it now, as writing to a hole fails when the disk is full.
  errno = ::posix_fallocate(file.number(), 0, Table::kBytes);
  if (errno != 0)
    return fail_errno(fmt::format("cannot create {}", path.native()));
  void* const memory = ::mmap(nullptr, Table::kBytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED)
    return fail_errno(fmt::format("cannot map {}", path.native()));
  PhaseTable table;
  table.memory_ = static_cast<std::byte*>(memory);
  std::memset(table.memory_, 0, kNamesOffset);
  table.word(8).store(Table::kSlots);
  table.word(12).store(Table::kNamesBytes);
  table.word(kUsedOffset).store(4);
  // Written last: a table with its magic is complete.
  std::memcpy(table.memory_, kMagic.data(), kMagic.size());
  return table;
}

std::atomic_ref<std::uint32_t> PhaseTable::word(std::size_t offset) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory_ + offset));
}

std::uint32_t PhaseTable::name_offset(std::string_view name,
                                      std::string_view frame_id) {
  name = name.substr(0, kMostName);
  frame_id = frame_id.substr(0, kMostName);
  const auto [known, fresh] =
      names_.try_emplace({std::string(name), std::string(frame_id)}, 0);
  if (!fresh)
    return known->second;
  const std::uint32_t at = word(kUsedOffset).load();
  const std::size_t size = Table::kTextOffset + name.size() + frame_id.size();
  if (at + size > Table::kNamesBytes)
    return 0;
  std::byte* const to = memory_ + kNamesOffset + at;
  const std::array<std::uint16_t, 2> sizes = {
      static_cast<std::uint16_t>(name.size()),
      static_cast<std::uint16_t>(frame_id.size())};
  std::memcpy(to, sizes.data(), 4);
  std::memset(to + 4, 0, 8);
  std::byte* const text = to + Table::kTextOffset;
  std::ranges::copy(as_bytes(name), text);
  std::ranges::copy(as_bytes(frame_id), text + name.size());
  word(kUsedOffset).store(at + static_cast<std::uint32_t>((size + 3) & ~3ULL));
  known->second = at;
  return at;
}

void PhaseTable::show(pid_t tid, const Thread& thread) {
  if (thread.slot == kNoSlot)
    return;
  const std::size_t at = slot_offset(thread.slot);
  const std::size_t depth =
      std::min<std::size_t>(thread.phases.size(), Table::kMostPhases);
  word(at + 4).fetch_add(1);
  word(at).store(static_cast<std::uint32_t>(depth == 0 ? 0 : tid));
  word(at + 8).store(static_cast<std::uint32_t>(depth));
  for (std::size_t i = 0; i < depth; ++i)
    word(at + 12 + 4 * i).store(thread.phases[i]);
  word(at + 4).fetch_add(1);
}

void PhaseTable::begin(pid_t tid, std::string_view name,
                       std::string_view frame_id) {
  const std::lock_guard lock(*mutex_);
  const auto [known, fresh] = threads_.try_emplace(tid);
  Thread& thread = known->second;
  if (fresh) {
    thread.slot = kNoSlot;
    for (std::uint32_t slot = 0; slot < Table::kSlots; ++slot)
      if (word(slot_offset(slot)).load() == 0) {
        thread.slot = slot;
        const auto used = word(Table::kUsedSlotsOffset);
        used.store(std::max(used.load(), slot + 1));
        break;
      }
  }
  thread.phases.push_back(name_offset(name, frame_id));
  show(tid, thread);
}

void PhaseTable::end(pid_t tid) {
  const std::lock_guard lock(*mutex_);
  const auto known = threads_.find(tid);
  if (known == threads_.end())
    return;
  known->second.phases.pop_back();
  show(tid, known->second);
  // A thread outside phases frees its slot for other threads.
  if (known->second.phases.empty())
    threads_.erase(known);
}

Phase::Phase(PhaseTable* table, std::string_view name,
             std::string_view frame_id)
    : table_(table), tid_(table == nullptr ? 0 : ::gettid()) {
  if (table_ != nullptr)
    table_->begin(tid_, name, frame_id);
}

Phase::~Phase() {
  if (table_ != nullptr)
    table_->end(tid_);
}

PhaseTableReader::PhaseTableReader(PhaseTableReader&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), mapped_(other.mapped_) {}

PhaseTableReader::~PhaseTableReader() {
  if (memory_ != nullptr && mapped_)
    ::munmap(const_cast<std::byte*>(memory_), Table::kBytes);
}

Result<PhaseTableReader> PhaseTableReader::open(
    const std::filesystem::path& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (!file.is_open() || ::fstat(file.number(), &status) != 0)
    return fail_errno(fmt::format("cannot open {}", path.native()));
  if (!S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) != Table::kBytes)
    return fail(ErrorKind::kCorrupt, "{} is not a phase table", path.native());
  void* const memory =
      ::mmap(nullptr, Table::kBytes, PROT_READ, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED)
    return fail_errno(fmt::format("cannot map {}", path.native()));
  PhaseTableReader reader;
  reader.memory_ = static_cast<const std::byte*>(memory);
  reader.mapped_ = true;
  if (as_text({reader.memory_, 8}) != kMagic)
    return fail(ErrorKind::kCorrupt, "{} is not a phase table", path.native());
  return reader;
}

std::optional<PhaseTableReader> PhaseTableReader::over(
    const std::byte* memory) {
  if (as_text({memory, kMagic.size()}) != kMagic)
    return std::nullopt;
  PhaseTableReader reader;
  reader.memory_ = memory;
  return reader;
}

std::vector<std::uint32_t> PhaseTableReader::phases(pid_t tid) const {
  std::vector<std::uint32_t> found;
  const std::uint32_t used =
      std::min(load(memory_, Table::kUsedSlotsOffset), Table::kSlots);
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    const std::size_t at = slot_offset(slot);
    const std::uint32_t owner = load(memory_, at);
    if (owner == 0 || (tid != 0 && owner != static_cast<std::uint32_t>(tid)))
      continue;
    const std::uint32_t before = load(memory_, at + 4);
    const std::uint32_t depth =
        std::min(load(memory_, at + 8), Table::kMostPhases);
    if (tid == 0 && depth == 0)
      continue;
    for (std::uint32_t i = 0; i < depth; ++i)
      found.push_back(load(memory_, at + 12 + std::size_t{4} * i));
    if (before % 2 != 0 || load(memory_, at + 4) != before ||
        load(memory_, at) != owner)
      found.clear();
    break;
  }
  return found;
}

SeenPhase PhaseTableReader::seen(std::uint32_t phase) const {
  constexpr std::size_t kNamesEnd = Table::kNamesBytes;
  constexpr std::size_t kText = Table::kTextOffset;
  if (phase == 0 || phase % 4 != 0 || phase + kText > kNamesEnd)
    return {.name = "?", .frame_id = ""};
  const std::byte* const at = memory_ + kNamesOffset + phase;
  const std::size_t name = load_little_endian<std::uint16_t>(at);
  const std::size_t frame_id = load_little_endian<std::uint16_t>(at + 2);
  if (phase + kText + name + frame_id > kNamesEnd)
    return {.name = "?", .frame_id = ""};
  return {.name = std::string(as_text({at + kText, name})),
          .frame_id = std::string(as_text({at + kText + name, frame_id})),
          .owner = load_little_endian<std::uint64_t>(at + 4)};
}

std::string PhaseTableReader::thread_name(pid_t tid) const {
  const std::uint32_t used =
      std::min(load(memory_, Table::kUsedSlotsOffset), Table::kSlots);
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    const std::size_t at = slot_offset(slot);
    if (load(memory_, at) != static_cast<std::uint32_t>(tid))
      continue;
    const std::uint32_t before = load(memory_, at + 4);
    const std::uint32_t name = load(memory_, at + Table::kNameOffset);
    if (name == 0 || before % 2 != 0)
      return {};
    std::string text = seen(name).name;
    return load(memory_, at + 4) == before ? text : std::string();
  }
  return {};
}

}  // namespace postflight
