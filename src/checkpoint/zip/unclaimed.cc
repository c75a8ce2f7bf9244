#include "checkpoint/zip/unclaimed.h"

#include <algorithm>
#include <array>
#include <utility>

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

// The padding of torch, and of Android's tools.
constexpr std::uint16_t kPaddingOfTorch = 0x4246;
constexpr std::uint16_t kPaddingOfAndroid = 0xd935;
// 64-bit sizes, times and owners in several forms.
constexpr std::array<std::uint16_t, 6> kUsual = {kZip64Extra, 0x000a, 0x5455,
                                                 0x5855,      0x7855, 0x7875};
constexpr std::size_t kLongestUsual = 64;

bool is_usual(std::uint16_t kind, Bytes field) {
  if (kind == kPaddingOfTorch || kind == kPaddingOfAndroid)
    return std::ranges::all_of(
        field.subspan(std::min<std::size_t>(kind == kPaddingOfAndroid ? 2 : 0,
                                            field.size())),
        [](std::byte byte) {
          return byte == std::byte{'Z'} || byte == std::byte{0};
        });
  return field.size() <= kLongestUsual &&
         std::ranges::find(kUsual, kind) != kUsual.end();
}

class HiddenFields {
 public:
  explicit HiddenFields(Bytes archive) : archive_(archive) {}

  void extra(std::uint64_t at, std::uint64_t size) {
    const Bytes all = archive_.subspan(at, size);
    Cursor cursor(all);
    while (size - cursor.offset() >= 4) {
      const std::uint64_t begin = cursor.offset() + 4;
      const auto kind = *cursor.little_endian<std::uint16_t>();
      const auto length = *cursor.little_endian<std::uint16_t>();
      const auto field = cursor.take(length);
      if (!field || !is_usual(kind, *field))
        add(at + begin, field ? length : size - begin);
      if (!field)
        return;
    }
  }

  // One line of text cannot be a pickle that imports anything.
  void comment(std::uint64_t at, std::uint64_t size) {
    if (!std::ranges::all_of(as_text(archive_.subspan(at, size)),
                             [](char c) { return c >= ' ' && c <= '~'; }))
      add(at, size);
  }

  std::vector<Extent> take() { return std::move(found_); }

 private:
  void add(std::uint64_t at, std::uint64_t size) {
    constexpr std::size_t kMost = 100;
    constexpr std::uint64_t kLeast = 8;  // fewer can import nothing
    if (size >= kLeast && found_.size() < kMost)
      found_.push_back({at, size});
  }

  Bytes archive_;
  std::vector<Extent> found_;
};

}  // namespace

std::vector<Extent> hidden_fields(Bytes archive,
                                  const ZipDirectory& directory) {
  HiddenFields hidden(archive);
  for (const ZipEntry& entry : directory.entries()) {
    const std::uint64_t header = directory.header_at(entry);
    if (const auto local = LocalHeader::read(archive, header)) {
      const std::uint64_t at = header + kLocalHeaderSize + local->name.size();
      hidden.extra(at, local->data - at);
    }
  }
  constexpr std::uint64_t kSizes = 28;  // of name, extra fields and comment
  const Extent& lines = directory.directory();
  std::uint64_t at = lines.offset;
  while (at <= lines.end() && lines.end() - at >= kEntrySize) {
    const auto size = [&archive, at](std::uint64_t field) {
      return load_little_endian<std::uint16_t>(archive.data() + at + kSizes +
                                               2 * field);
    };
    const std::uint64_t extra = at + kEntrySize + size(0);
    const std::uint64_t comment = extra + size(1);
    const std::uint64_t end = comment + size(2);
    if (end > lines.end())
      break;
    hidden.extra(extra, size(1));
    hidden.comment(comment, size(2));
    at = end;
  }
  constexpr std::uint64_t kEnd = 22;  // without the comment
  const Bytes behind = archive.subspan(lines.end());
  const std::size_t last = as_text(behind).find(kEndSignature);
  if (last != std::string_view::npos && behind.size() - last > kEnd) {
    const std::uint64_t stated =
        load_little_endian<std::uint16_t>(behind.data() + last + kEnd - 2);
    hidden.comment(
        lines.end() + last + kEnd,
        std::min<std::uint64_t>(stated, behind.size() - last - kEnd));
  }
  return hidden.take();
}

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
