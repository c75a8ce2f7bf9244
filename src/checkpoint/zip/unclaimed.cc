#include "checkpoint/zip/unclaimed.h"

#include <algorithm>

#include "checkpoint/zip/format.h"
#include "checkpoint/zip/local_header.h"

namespace postflight {
namespace {

constexpr std::uint16_t kDescriptorFlag = 0x0008;

// Of the descriptor behind an entry, if it is there: a signature or none, the
// CRC, and two sizes of 4 or 8 bytes.
std::uint64_t descriptor_size(Bytes behind, const ZipEntry& entry) {
  const std::uint64_t mark =
      as_text(behind).starts_with(kDescriptorSignature) ? 4 : 0;
  for (const bool wide : {false, true}) {
    const std::uint64_t size = mark + 4 + (wide ? 16 : 8);
    if (behind.size() < size)
      break;
    const std::byte* const from = behind.data() + mark + 4;
    const std::uint64_t packed = wide ? load_little_endian<std::uint64_t>(from)
                                      : load_little_endian<std::uint32_t>(from);
    const std::uint64_t whole =
        wide ? load_little_endian<std::uint64_t>(from + 8)
             : load_little_endian<std::uint32_t>(from + 4);
    if (packed == entry.compressed_size && whole == entry.size)
      return size;
  }
  return 0;
}

}  // namespace

std::vector<Extent> unclaimed_bytes(Bytes archive,
                                    const ZipDirectory& directory) {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : directory.entries())
    order.push_back(&entry);
  if (!std::ranges::is_sorted(order, {}, &ZipEntry::header_offset))
    std::ranges::stable_sort(order, {}, &ZipEntry::header_offset);
  std::uint64_t at = directory.start();
  std::vector<Extent> unclaimed;
  const auto account_up_to = [&](std::uint64_t begin) {
    if (at < begin)
      unclaimed.push_back({at, begin - at});
  };
  for (const ZipEntry* const entry : order) {
    const std::uint64_t header = directory.header_at(*entry);
    const auto local = LocalHeader::read(archive, header);
    if (!local)
      continue;
    account_up_to(header);
    std::uint64_t end = std::min<std::uint64_t>(
        archive.size(), checked_add(local->data, entry->compressed_size)
                            .value_or(archive.size()));
    if (((entry->flags | local->flags) & kDescriptorFlag) != 0)
      end += descriptor_size(archive.subspan(end), *entry);
    at = std::max(at, end);
  }
  account_up_to(directory.directory().offset);
  return unclaimed;
}

}  // namespace postflight
