#include "checkpoint/model/descriptions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/truncation_guard.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

constexpr std::uint64_t kCopiedEdge = 1 << 20;
constexpr std::uint64_t kCopiedFront = 64 << 20;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // its own cap

// "archive/data/12": the bytes of one storage.
bool holds_tensor(const ZipEntry& entry) {
  return entry.name.find("/data/") != std::string_view::npos ||
         entry.name.find("/constants/") != std::string_view::npos ||
         entry.name.find("/weights/") != std::string_view::npos;
}

Result<> copy_records(const MappedFile& file, const ZipDirectory& zip) {
  // What an entry's own header states of its name and extra fields.
  constexpr std::uint64_t kMostHeader = kLocalHeaderSize + 2 * 65536;
  const std::uint64_t all = file.bytes().size();
  const std::span<const ZipEntry> entries = zip.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = entries[i];
    if (holds_tensor(entry) || entry.header_offset > all ||
        entry.compressed_size > all)
      continue;
    std::uint64_t size = kMostHeader + entry.compressed_size;
    if (i + 1 < entries.size() &&
        entries[i + 1].header_offset > entry.header_offset)
      size = std::min(size, entries[i + 1].header_offset - entry.header_offset);
    TRY(file.copy_in(zip.header_at(entry), size));
  }
  return {};
}

std::uint64_t copied_front_of(Bytes bytes) {
  const auto header = load_little_endian<std::uint64_t>(bytes.data());
  const bool is_safetensors =
      header <= kMostHeaderBytes && bytes[8] == std::byte{'{'};
  return is_safetensors ? header + 8 : kCopiedFront;
}

}  // namespace

Result<> copy_descriptions(const MappedFile& file, const Limits& limits) {
  const Bytes bytes = file.bytes();
  if (TruncationGuard::exists() || bytes.size() <= 2 * kCopiedEdge)
    return {};
  TRY(file.copy_in(0, kCopiedEdge));
  TRY(file.copy_in(bytes.size() - kCopiedEdge, kCopiedEdge));
  const Result<ZipEnd> end = find_zip_end(bytes);
  if (!end)
    return file.copy_in(0, copied_front_of(bytes));
  TRY(file.copy_in(end->directory.offset,
                   bytes.size() - end->directory.offset));
  // A damaged archive is searched in other ways.
  const Result<ZipDirectory> zip = ZipDirectory::read(bytes, limits);
  return zip ? copy_records(file, *zip) : file.copy_in(0, kCopiedFront);
}

}  // namespace postflight
