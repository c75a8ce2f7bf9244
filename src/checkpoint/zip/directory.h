#pragma once

#include "base/bytes.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/zip/end.h"
#include "checkpoint/zip/extent.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace postflight {

// An entry as the directory states it, unchecked.
struct ZipEntry {
  std::string_view name;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;  // from the front of the archive
  std::uint32_t crc32 = 0;
  std::uint32_t modified = 0;  // DOS time, and date in the upper half
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint16_t made_by = 0;
  std::uint16_t needed = 0;
};

// The contents of an entry: a view into the archive if it is stored, otherwise
// an owned copy. The view is valid while the archive's bytes are.
struct Contents {
  Bytes stored;
  std::vector<std::byte> inflated;

  Bytes bytes() const { return inflated.empty() ? stored : Bytes(inflated); }
};

enum class CrcState : std::uint8_t {
  kGood,
  kAbsent,  // torch was told not to compute it: 0, though there are bytes
};

// Fails if `contents` do not match the CRC of `entry`.
Result<CrcState> check_crc(const ZipEntry& entry, Bytes contents);

// The policy on which entries are read: those that are not encrypted, stored or
// deflated, of a size that their `stored` bytes can have and the limits allow.
Result<> check_entry(const ZipEntry& entry, std::uint64_t stored,
                     const Limits& limits);

// The directory of one zip archive. It keeps views into the bytes it was read
// from and is valid while they are. Offsets it hands out count from the front
// of those bytes.
class ZipDirectory {
 public:
  // Reads the last archive in `file`. Bytes before and after it are findings,
  // as are entries that share a name or overlap.
  static Result<ZipDirectory> read(Bytes file, const Limits& limits);

  std::span<const ZipEntry> entries() const { return entries_; }
  const std::vector<Finding>& findings() const { return end_.findings; }
  const Extent& archive() const { return end_.archive; }
  const Extent& directory() const { return end_.directory; }
  std::uint64_t start() const { return end_.archive.offset; }
  std::uint64_t trailing_bytes() const {
    return file_.size() - end_.archive.end();
  }

  // The part of the first name before its slash: torch puts all records of a
  // file into one folder. Empty if there is no slash.
  std::optional<std::string_view> root() const;

  // Of several entries with that name the last, as Python's zipfile has it;
  // nullptr if there is none.
  const ZipEntry* find(std::string_view name) const;

  // The exact name if there is one, else one that differs in the case of
  // ASCII letters only: torch looks its records up like this.
  const ZipEntry* find_ignoring_case(std::string_view name) const;

  // Where the bytes of an entry are, compressed or not. Only its local header
  // says so, and that must have the same name.
  Result<Extent> extent(const ZipEntry& entry) const;
  // The same, given a local header that was read from header_at(), up to and
  // including its name. Empty unless the header is valid.
  std::optional<Extent> extent_by(const ZipEntry& entry, Bytes header) const;
  std::uint64_t header_at(const ZipEntry& entry) const {
    return start() + entry.header_offset;
  }
  Result<Bytes> stored_bytes(const ZipEntry& entry) const;

  // Does not check the CRC, as torch does not.
  Result<Contents> contents(const ZipEntry& entry) const;

 private:
  // A position in entries_, ordered by hash, then name, then position.
  struct NameKey {
    std::uint32_t hash;  // of the name in lower case
    std::uint32_t entry;
  };

  ZipDirectory(Bytes file, const Limits& limits, ZipEnd end)
      : file_(file), limits_(limits), end_(std::move(end)) {}

  Result<> read_entries();
  void index_names();
  void look_for_duplicates();
  void look_for_overlaps();
  void look_around();
  const ZipEntry* find_last(std::string_view name, bool exact) const;

  Bytes file_;
  Limits limits_;
  ZipEnd end_;
  std::vector<ZipEntry> entries_;
  std::vector<NameKey> names_;
};

}  // namespace postflight
