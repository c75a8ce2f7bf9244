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

// One entry as the directory states it; nothing of it has been checked yet.
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

// What an entry holds: a view into the archive where it lies there as it is,
// else an owned copy. The view is valid while the archive's bytes are.
struct Contents {
  Bytes stored;
  std::vector<std::byte> inflated;

  Bytes bytes() const { return inflated.empty() ? stored : Bytes(inflated); }
};

enum class CrcState : std::uint8_t {
  kGood,
  kAbsent,  // torch was told not to compute it: 0 for bytes there are
};

// Whether `contents` are what `entry` was made of; an error if they are not.
Result<CrcState> check_crc(const ZipEntry& entry, Bytes contents);

// The directory of one zip archive. It keeps views into the bytes it was read
// from and is valid while they are. Offsets it hands out count from the front
// of those bytes.
class ZipDirectory {
 public:
  // Reads the last archive in `file`. It may begin past the front and bytes
  // may follow it; both are findings, as are entries that share a name or
  // overlap.
  static Result<ZipDirectory> read(Bytes file, const Limits& limits);

  std::span<const ZipEntry> entries() const { return entries_; }
  const std::vector<Finding>& findings() const { return end_.findings; }
  const Extent& archive() const { return end_.archive; }
  const Extent& directory() const { return end_.directory; }
  std::uint64_t start() const { return end_.archive.offset; }
  std::uint64_t trailing_bytes() const {
    return file_.size() - end_.archive.end();
  }

  // What comes before the first slash of the first name: torch puts all
  // records of a file into one folder. Nothing if there is no slash.
  std::optional<std::string_view> root() const;

  // Of several entries with that name the last, as Python's zipfile has it;
  // nullptr if there is none.
  const ZipEntry* find(std::string_view name) const;

  // The exact name if there is one, else one that differs in the case of
  // ASCII letters only: torch looks its records up like this.
  const ZipEntry* find_ignoring_case(std::string_view name) const;

  // Where the bytes of an entry lie, compressed or not. Only its local header
  // knows, and that must bear the same name.
  Result<Extent> extent(const ZipEntry& entry) const;
  // The same of a local header that was read elsewhere, from header_at(): all
  // of its name at least. Nothing unless it is as it should be.
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
