#include "checkpoint/zip/end.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kZip64EndSize = 56;
constexpr std::uint64_t kZip64Size = kZip64EndSize + kLocatorSize;
constexpr std::uint64_t kLongestComment = 0xffff;

// What an end record states; both kinds have the same six fields.
struct Stated {
  std::uint64_t disk;
  std::uint64_t directory_disk;
  std::uint64_t entries_here;
  std::uint64_t entries;
  std::uint64_t directory_size;
  std::uint64_t directory_offset;  // from the front of the archive
};

struct Zip64End {
  std::uint64_t offset;         // where it is
  std::uint64_t stated_offset;  // where it is according to the locator
  std::uint64_t stated_disk;
  std::uint64_t disks;
  Stated stated;
};

bool has(Bytes file, std::uint64_t offset, std::string_view signature) {
  return as_text(file.subspan(offset)).starts_with(signature);
}

template <class T>
T field(Bytes file, std::uint64_t offset) {
  return load_little_endian<T>(file.data() + offset);
}

Result<std::uint64_t> find_end_record(Bytes file) {
  if (file.size() >= kEndSize) {
    const std::uint64_t last = file.size() - kEndSize;
    const std::uint64_t first = last - std::min(last, kLongestComment);
    const std::size_t found =
        as_text(file.subspan(first)).rfind(kEndSignature, last - first);
    if (found != std::string_view::npos)
      return first + found;
  }
  if (as_text(file).starts_with(kLocalSignature))
    return fail(ErrorKind::kCorrupt,
                "the archive is truncated: its directory, which comes last, is "
                "not in these {} bytes; the writer was probably killed or the "
                "copy interrupted",
                file.size());
  return fail(ErrorKind::kCorrupt, "no zip archive ends in these {} bytes",
              file.size());
}

Stated read_end(Bytes file, std::uint64_t at) {
  return {.disk = field<std::uint16_t>(file, at + 4),
          .directory_disk = field<std::uint16_t>(file, at + 6),
          .entries_here = field<std::uint16_t>(file, at + 8),
          .entries = field<std::uint16_t>(file, at + 10),
          .directory_size = field<std::uint32_t>(file, at + 12),
          .directory_offset = field<std::uint32_t>(file, at + 16)};
}

Stated read_zip64_end(Bytes file, std::uint64_t at) {
  return {.disk = field<std::uint32_t>(file, at + 16),
          .directory_disk = field<std::uint32_t>(file, at + 20),
          .entries_here = field<std::uint64_t>(file, at + 24),
          .entries = field<std::uint64_t>(file, at + 32),
          .directory_size = field<std::uint64_t>(file, at + 40),
          .directory_offset = field<std::uint64_t>(file, at + 48)};
}

// Whether a 64-bit end record at `at` ends where the locator begins.
bool is_zip64_end(Bytes file, std::uint64_t at, std::uint64_t locator) {
  if (at > locator || locator - at < kZip64EndSize ||
      !has(file, at, kZip64EndSignature))
    return false;
  return field<std::uint64_t>(file, at + 4) == locator - at - 12;
}

bool has_locator(Bytes file, std::uint64_t end) {
  return end >= kLocatorSize &&
         has(file, end - kLocatorSize, kLocatorSignature);
}

std::optional<Zip64End> find_zip64_end(Bytes file, std::uint64_t end) {
  if (!has_locator(file, end))
    return std::nullopt;
  const std::uint64_t locator = end - kLocatorSize;
  const auto disk = field<std::uint32_t>(file, locator + 4);
  const auto stated_offset = field<std::uint64_t>(file, locator + 8);
  const auto disks = field<std::uint32_t>(file, locator + 16);
  // Not first at the stated offset: that counts from the front of the archive,
  // which is not known yet, and other archives may be in between.
  if (locator >= kZip64EndSize &&
      is_zip64_end(file, locator - kZip64EndSize, locator)) {
    const std::uint64_t at = locator - kZip64EndSize;
    return Zip64End{at, stated_offset, disk, disks, read_zip64_end(file, at)};
  }
  if (is_zip64_end(file, stated_offset, locator))
    return Zip64End{stated_offset, stated_offset, disk, disks,
                    read_zip64_end(file, stated_offset)};
  return std::nullopt;
}

bool is_saturated(const Stated& end) {
  return end.directory_size == 0xffffffff || end.directory_offset == 0xffffffff;
}

bool agree(const Stated& end, const Stated& zip64) {
  const auto same = [](std::uint64_t narrow, std::uint64_t saturated,
                       std::uint64_t wide) {
    return narrow == saturated || narrow == wide;
  };
  return same(end.disk, 0xffff, zip64.disk) &&
         same(end.directory_disk, 0xffff, zip64.directory_disk) &&
         same(end.entries_here, 0xffff, zip64.entries_here) &&
         same(end.entries, 0xffff, zip64.entries) &&
         same(end.directory_size, 0xffffffff, zip64.directory_size) &&
         same(end.directory_offset, 0xffffffff, zip64.directory_offset);
}

// Whether a directory as stated would end at `end`.
bool ends_at(Bytes file, const Stated& stated, std::uint64_t end) {
  return stated.directory_size <= end &&
         has(file, end - stated.directory_size, kEntrySignature);
}

// torch always writes a 64-bit end record, so if one bit of that has changed,
// the 32-bit record still has everything, and its directory just ends earlier.
bool lies_before_damage(Bytes file, const Stated& stated, std::uint64_t end) {
  return stated.entries > 0 && end >= kZip64Size &&
         !ends_at(file, stated, end) && ends_at(file, stated, end - kZip64Size);
}

Finding mismatch(std::string message, std::uint64_t at) {
  return {.kind = "zip_end_mismatch",
          .severity = Severity::kError,
          .message = std::move(message),
          .where = fmt::format("byte {}", at)};
}

// Sets where the archive and its directory begin, given the end of the
// directory.
Result<> place(const Stated& stated, std::uint64_t directory_end, ZipEnd& end) {
  if (stated.directory_size > directory_end ||
      stated.directory_offset > directory_end - stated.directory_size)
    return fail(ErrorKind::kCorrupt,
                "the directory should be at offset {} with {} bytes, but "
                "only {} bytes come before its end; the front of the archive "
                "is missing",
                stated.directory_offset, stated.directory_size, directory_end);
  end.directory.offset = directory_end - stated.directory_size;
  end.directory.size = stated.directory_size;
  end.archive.offset = end.directory.offset - stated.directory_offset;
  end.entries = stated.entries;
  return {};
}

Result<> check_directory(Bytes file, const ZipEnd& end) {
  if (end.entries > end.directory.size / kEntrySize)
    return fail(ErrorKind::kCorrupt,
                "the directory should have {} entries in {} bytes, but "
                "each takes at least {}",
                end.entries, end.directory.size, kEntrySize);
  if (end.entries > 0 && !has(file, end.directory.offset, kEntrySignature))
    return fail(ErrorKind::kCorrupt,
                "the directory should begin at byte {}, but there is no entry",
                end.directory.offset);
  return {};
}

}  // namespace

Result<ZipEnd> find_zip_end(Bytes file) {
  const std::uint64_t at = TRY(find_end_record(file));
  Stated stated = read_end(file, at);
  std::uint64_t directory_end = at;
  ZipEnd end;

  const std::optional<Zip64End> zip64 = find_zip64_end(file, at);
  if (zip64) {
    if (!agree(stated, zip64->stated))
      end.findings.push_back(
          mismatch("the archive's two end records disagree; readers may see "
                   "different entries; the 64-bit one was used",
                   at));
    stated = zip64->stated;
    directory_end = zip64->offset;
  } else if (is_saturated(stated)) {
    return fail(ErrorKind::kCorrupt,
                "the end record at byte {} refers to a 64-bit end record, "
                "which is not there",
                at);
  } else if (lies_before_damage(file, stated, at)) {
    end.findings.push_back(mismatch(
        "the archive's 64-bit end record is damaged; the 32-bit one was used",
        at - kZip64Size));
    directory_end = at - kZip64Size;
  } else if (has_locator(file, at)) {
    end.findings.push_back(
        mismatch("a locator refers to a 64-bit end record that is not beside "
                 "it; readers may see different entries; it was ignored",
                 at - kLocatorSize));
  }
  // Writers count disks from 0 or, wrongly, from 1.
  if (stated.disk > 1 || stated.disk != stated.directory_disk ||
      stated.entries_here != stated.entries)
    return fail(ErrorKind::kUnsupported,
                "the archive is a part of one that spans several disks; join "
                "the parts first");
  TRY(place(stated, directory_end, end));
  TRY(check_directory(file, end));
  if (zip64 && zip64->stated_offset != zip64->offset - end.archive.offset)
    end.findings.push_back(mismatch(
        fmt::format("the 64-bit end record should be at offset {} and "
                    "lies at {}; readers may see different entries",
                    zip64->stated_offset, zip64->offset - end.archive.offset),
        zip64->offset));

  // Some count the disks from 0 here, too.
  if (zip64 && (zip64->stated_disk != zip64->stated.disk || zip64->disks > 1))
    end.findings.push_back(mismatch(
        fmt::format("the locator of the 64-bit end record says disk {} of {}, "
                    "but the archive has one",
                    zip64->stated_disk, zip64->disks),
        at - kLocatorSize));

  const std::uint64_t comment = field<std::uint16_t>(file, at + 20);
  const std::uint64_t room = file.size() - at - kEndSize;
  if (comment > room)
    end.findings.push_back(
        {.kind = "zip_comment_cut",
         .severity = Severity::kWarning,
         .message = fmt::format("the archive's comment should have {} bytes, "
                                "{} are there",
                                comment, room),
         .where = fmt::format("byte {}", at)});
  end.archive.size =
      at + kEndSize + std::min(comment, room) - end.archive.offset;
  return end;
}

std::optional<std::uint64_t> other_zip_end(Bytes file) {
  const Result<std::uint64_t> used = find_end_record(file);
  if (!used)
    return std::nullopt;
  const std::uint64_t at = *used;
  const std::uint64_t first = at - std::min(at, kLongestComment + kEndSize);
  const std::string_view before = as_text(file.subspan(first, at - first));
  for (std::size_t found = before.rfind(kEndSignature); found != before.npos;
       found = found == 0 ? before.npos
                          : before.rfind(kEndSignature, found - 1)) {
    const std::uint64_t place = first + found;
    if (at - place >= kEndSize &&
        place + kEndSize + field<std::uint16_t>(file, place + 20) ==
            file.size())
      return place;
  }
  return std::nullopt;
}

}  // namespace postflight
