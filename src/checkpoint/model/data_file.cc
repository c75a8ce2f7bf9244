#include "checkpoint/model/data_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/interruption.h"
#include "base/truncation_guard.h"
#include "checkpoint/model/descriptions.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

// Opening a file costs as much as reading a few pages from the mapping.
constexpr std::size_t kSmallRead = 64 << 10;
// Between two of these, the call may be interrupted.
constexpr std::size_t kReadUnasked = 16 << 20;

}  // namespace

DataFile::DataFile(std::filesystem::path path, std::optional<MappedFile> map,
                   std::optional<Descriptor> descriptor, const Limits& limits)
    : path_(std::move(path)),
      map_(std::move(map)),
      bytes_(map_ ? map_->bytes() : Bytes()),
      descriptor_(std::move(descriptor)),
      limits_(limits) {}

Result<std::unique_ptr<DataFile>> DataFile::part(const DataFile& whole,
                                                 const Extent& extent) {
  const Bytes bytes = TRY(slice(whole.bytes(), extent.offset, extent.size));
  std::unique_ptr<DataFile> part(
      new DataFile(whole.path_, std::nullopt, std::nullopt, whole.limits_));
  part->bytes_ = bytes;
  part->whole_ = &whole;
  part->begin_ = extent.offset;
  return part;
}

std::unique_ptr<DataFile> DataFile::over(Bytes bytes,
                                         const std::filesystem::path& name,
                                         const Limits& limits) {
  std::unique_ptr<DataFile> file(
      new DataFile(name, std::nullopt, std::nullopt, limits));
  file->bytes_ = bytes;
  return file;
}

std::unique_ptr<DataFile> DataFile::in_memory(const DataFile& whole,
                                              WholeStream bytes) {
  std::unique_ptr<DataFile> file(
      new DataFile(whole.path_, std::nullopt, std::nullopt, whole.limits_));
  file->memory_ = std::move(bytes);
  file->bytes_ = file->memory_->bytes();
  return file;
}

Result<std::unique_ptr<DataFile>> DataFile::open(
    const std::filesystem::path& path, const Limits& limits, bool kept_open) {
  MappedFile map = TRY(MappedFile::open(path, limits));
  TRY(copy_descriptions(map, limits));
  std::unique_ptr<DataFile> file(
      new DataFile(path, std::move(map), std::nullopt, limits));
  struct stat status {};
  // Only a regular file can be read again; a pipe is already in memory.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return file;
  if (!kept_open) {
    file->opens_again_ = true;
    return file;
  }
  if (Result<Descriptor> opened = file->opened_again())
    file->descriptor_ = *std::move(opened);
  return file;
}

Result<Descriptor> DataFile::opened_again() const {
  Descriptor opened(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!opened.is_open())
    return fail_to_open(path_);
  struct stat status {};
  if (::fstat(opened.number(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != size())
    return fail(ErrorKind::kIo, "{}: it changed while it was read",
                path_.string());
  return opened;
}

Result<> DataFile::copy_edges(std::uint64_t begin, std::uint64_t end) const {
  if (!map_ || TruncationGuard::exists())
    return {};
  TRY(map_->copy_in(0, begin));
  return map_->copy_in(end, size() - std::min(end, size()));
}

Result<> DataFile::read_at(std::uint64_t offset,
                           std::span<std::byte> to) const {
  if (offset > size() || to.size() > size() - offset)
    return fail(ErrorKind::kCorrupt,
                "{}: bytes {} to {} are beyond its end at {}", path_.string(),
                offset, offset + to.size(), size());
  if (whole_ != nullptr)
    return whole_->read_at(begin_ + offset, to);
  const bool from_mapping = to.size() < kSmallRead && TruncationGuard::exists();
  if (!descriptor_ && (!opens_again_ || from_mapping)) {
    copy_bytes(bytes().subspan(offset, to.size()), to);
    return {};
  }
  const std::optional<Descriptor> own =
      descriptor_ ? std::nullopt : std::optional(TRY(opened_again()));
  const int number = (descriptor_ ? descriptor_ : own)->number();
  while (!to.empty()) {
    TRY(check_interruption());
    const ssize_t count =
        ::pread(number, to.data(), std::min(to.size(), kReadUnasked),
                static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail_errno(fmt::format("cannot read {}", path_.string()));
    if (count == 0)
      return fail(ErrorKind::kIo,
                  "{}: it was truncated while it was read, at byte {}",
                  path_.string(), offset);
    to = to.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<> DataFile::read_at(std::uint64_t offset,
                           std::span<const std::span<std::byte>> to) const {
  constexpr std::size_t kMostPieces = 512;
  std::array<iovec, kMostPieces> pieces;
  while (!to.empty()) {
    const std::size_t count = std::min(to.size(), kMostPieces);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      pieces[i] = {to[i].data(), to[i].size()};
      total += to[i].size();
    }
    const ssize_t got =
        descriptor_ && offset <= size() && total <= size() - offset
            ? ::preadv(descriptor_->number(), pieces.data(),
                       static_cast<int>(count), static_cast<off_t>(offset))
            : -1;
    if (got < 0 || static_cast<std::uint64_t>(got) != total) {
      // Interrupted, in memory, or beyond the end: reading each span tells.
      std::uint64_t at = offset;
      for (std::size_t i = 0; i < count; ++i) {
        TRY(read_at(at, to[i]));
        at += to[i].size();
      }
    }
    offset += total;
    to = to.subspan(count);
  }
  return {};
}

std::optional<Bytes> DataFile::mapped_at(std::uint64_t offset,
                                         std::uint64_t size) const {
  const Result<Bytes> part = slice(bytes_, offset, size);
  if (!part || part->empty() || !TruncationGuard::exists())
    return std::nullopt;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part->data());
  const std::uintptr_t ahead = begin % page;
  void* const first = reinterpret_cast<void*>(begin - ahead);
  if (::madvise(first, part->size() + ahead, MADV_POPULATE_READ) != 0)
    return std::nullopt;
  return *part;
}

Result<Extent> DataFile::extent(const ZipEntry& entry) const {
  if (zip) {
    if (const std::optional<Extent> found = far_extent(entry))
      return *found;
    return zip->extent(entry);
  }
  const auto index = static_cast<std::size_t>(&entry - salvaged.data());
  return salvaged_extents[index];
}

// Touching one header of many maps the pages around it, which takes longer than
// reading it, unless neighbouring headers are needed too.
std::optional<Extent> DataFile::far_extent(const ZipEntry& entry) const {
  constexpr std::uint64_t kNear = 16 << 10;
  const std::uint64_t at = zip->header_at(entry);
  const std::uint64_t before =
      last_header_.exchange(at, std::memory_order_relaxed);
  std::array<std::byte, 512> room;
  const std::size_t size = kLocalHeaderSize + entry.name.size();
  const bool near = (at > before ? at - before : before - at) < kNear;
  if (!descriptor_ || (near && TruncationGuard::exists()) ||
      size > room.size() || at > this->size() || this->size() - at < size)
    return std::nullopt;
  const std::span<std::byte> header = std::span(room).first(size);
  if (!read_at(at, header))
    return std::nullopt;
  return zip->extent_by(entry, header);
}

}  // namespace postflight
