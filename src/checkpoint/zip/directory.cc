#include "checkpoint/zip/directory.h"

#include "base/ascii.h"
#include "checkpoint/zip/crc32.h"
#include "checkpoint/zip/format.h"
#include "checkpoint/zip/inflate.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <iterator>
#include <string>

namespace postflight {
namespace {

constexpr std::uint16_t kEncrypted = 0x0001;
constexpr std::uint16_t kDirectoryEncrypted = 0x2000;

// Hashes eight characters at a time, with the bit set that makes letters lower
// case, so names that differ only in case have the same hash, and so do some
// others. Names made to collide cost no more than the comparisons of a plain
// sort.
std::uint32_t hash_ignoring_case(std::string_view name) {
  constexpr std::uint64_t kSmall = 0x2020202020202020;
  std::uint64_t hash = name.size();
  const auto add = [&hash](std::uint64_t word) {
    hash = (hash ^ (word | kSmall)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  const Bytes bytes = as_bytes(name);
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8)
    add(load_little_endian<std::uint64_t>(bytes.data() + at));
  std::uint64_t rest = 0;
  copy_bytes(bytes.subspan(at), std::as_writable_bytes(std::span(&rest, 1)));
  add(rest);
  return static_cast<std::uint32_t>(hash >> 32);
}

// Sorts items that have a `hash`, by which `less` compares first: into as many
// buckets as there are items, by the top bits of their hashes, then each
// bucket. That takes a few steps per item, and is a plain sort if hashes were
// made to collide.
template <class T, class Less>
void sort_by_hash(std::vector<T>& items, const Less& less) {
  constexpr std::size_t kFewItems = 32;
  if (items.size() <= kFewItems) {
    std::ranges::sort(items, less);
    return;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(items.size()));
  constexpr unsigned kHashBits = 8 * sizeof(items[0].hash);
  const auto bucket = [bits](const T& item) {
    return static_cast<std::size_t>(item.hash >> (kHashBits - bits));
  };
  std::vector<std::size_t> ends(std::size_t{1} << bits);
  for (const T& item : items)
    ++ends[bucket(item)];
  std::size_t before = 0;
  for (std::size_t& end : ends)
    before += std::exchange(end, before);
  std::vector<T> sorted(items.size());
  for (const T& item : items)
    sorted[ends[bucket(item)]++] = item;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (end - begin > 1)
      std::ranges::sort(std::span(sorted).subspan(begin, end - begin), less);
    begin = end;
  }
  items = std::move(sorted);
}

std::strong_ordering compare_ignoring_case(std::string_view a,
                                           std::string_view b) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i)
    if (lowered(a[i]) != lowered(b[i]))
      return lowered(a[i]) <=> lowered(b[i]);
  return a.size() <=> b.size();
}

// Replaces the fields that were too large for 32 bits. The block holds those
// and no others, in this order.
Result<> read_zip64_block(Bytes block, ZipEntry& entry) {
  Cursor cursor(block);
  for (std::uint64_t* wide :
       {&entry.size, &entry.compressed_size, &entry.header_offset})
    if (*wide == kSaturated)
      *wide = TRY(cursor.little_endian<std::uint64_t>());
  return {};
}

Result<> read_extra(Bytes extra, ZipEntry& entry) {
  if (entry.size != kSaturated && entry.compressed_size != kSaturated &&
      entry.header_offset != kSaturated)
    return {};
  Cursor cursor(extra);
  while (!cursor.at_end()) {
    const auto kind = TRY(cursor.little_endian<std::uint16_t>());
    const auto size = TRY(cursor.little_endian<std::uint16_t>());
    const Bytes block = TRY(cursor.take(size));
    if (kind == kZip64Extra)
      return read_zip64_block(block, entry);
  }
  return {};
}

// Appends in place, as a directory has many.
Result<> read_entry(Cursor& cursor, std::vector<ZipEntry>& to) {
  const std::byte* const fixed = TRY(cursor.take(kEntrySize)).data();
  const auto wide = [fixed](std::size_t at) {
    return load_little_endian<std::uint32_t>(fixed + at);
  };
  const auto narrow = [fixed](std::size_t at) {
    return load_little_endian<std::uint16_t>(fixed + at);
  };
  if (std::memcmp(fixed, kEntrySignature.data(), 4) != 0)
    return fail(ErrorKind::kCorrupt, "the signature PK\\1\\2 is not there");
  ZipEntry& entry = to.emplace_back();
  entry.made_by = narrow(4);
  entry.needed = narrow(6);
  entry.flags = narrow(8);
  entry.method = narrow(10);
  entry.modified = wide(12);
  entry.crc32 = wide(16);
  entry.compressed_size = wide(20);
  entry.size = wide(24);
  // Between them are disk, internal and external attributes.
  entry.header_offset = wide(42);
  entry.name = as_text(TRY(cursor.take(narrow(28))));
  const Bytes extra = TRY(cursor.take(narrow(30)));
  TRY(cursor.skip(narrow(32)));
  return read_extra(extra, entry);
}

std::string quoted(std::string_view name) {
  return fmt::format("entry '{}'", name);
}

// A hostile directory can be wrong a million times, so each kind of problem is
// one finding: the first case and the number of others.
std::string and_others(std::uint64_t count) {
  return count > 1 ? fmt::format(" (and {} more such)", count - 1) : "";
}

}  // namespace

Result<CrcState> check_crc(const ZipEntry& entry, Bytes contents) {
  if (entry.crc32 == 0 && entry.size > 0)
    return CrcState::kAbsent;
  const std::uint32_t crc = crc32_of(contents);
  if (crc != entry.crc32)
    return fail(ErrorKind::kCorrupt, "{}: {}", quoted(entry.name),
                crc_mismatch(crc, entry.crc32));
  return CrcState::kGood;
}

Result<> check_entry(const ZipEntry& entry, std::uint64_t stored,
                     const Limits& limits) {
  if (entry.flags & (kEncrypted | kDirectoryEncrypted))
    return fail(ErrorKind::kUnsupported,
                "{}: it is encrypted; decrypt the archive first",
                quoted(entry.name));
  if (entry.method != kStored && entry.method != kDeflated)
    return fail(ErrorKind::kUnsupported,
                "{}: it is compressed by method {}, and only 0 (stored) and 8 "
                "(deflated) are read; pack the archive again",
                quoted(entry.name), entry.method);
  if (entry.method == kStored) {
    if (entry.size != stored)
      return fail(ErrorKind::kCorrupt,
                  "{}: it should have {} bytes, but {} are stored",
                  quoted(entry.name), entry.size, stored);
    return {};
  }
  if (entry.size > limits.max_inflated_bytes)
    return fail(ErrorKind::kRefused,
                "{}: it inflates to {} bytes, more than the {} allowed "
                "(max_inflated_bytes)",
                quoted(entry.name), entry.size, limits.max_inflated_bytes);
  constexpr std::uint64_t kBestRatio = 1032;  // of deflate
  if (entry.size / kBestRatio > stored + 1)
    return fail(ErrorKind::kCorrupt,
                "{}: its {} bytes cannot inflate to the {} stated",
                quoted(entry.name), stored, entry.size);
  return {};
}

Result<ZipDirectory> ZipDirectory::read(Bytes file, const Limits& limits) {
  ZipDirectory directory(file, limits, TRY(find_zip_end(file)));
  TRY(directory.read_entries());
  directory.index_names();
  directory.look_around();
  directory.look_for_duplicates();
  directory.look_for_overlaps();
  return directory;
}

Result<> ZipDirectory::read_entries() {
  if (end_.entries > limits_.max_archive_entries)
    return fail(ErrorKind::kRefused,
                "the archive has {} entries, more than the {} allowed "
                "(max_archive_entries)",
                end_.entries, limits_.max_archive_entries);
  Cursor cursor(file_.subspan(end_.directory.offset, end_.directory.size));
  entries_.reserve(end_.entries);
  for (std::uint64_t i = 0; i < end_.entries; ++i) {
    const std::uint64_t at = end_.directory.offset + cursor.offset();
    // Not TRY(...in(...)): making the text for each entry would cost more than
    // reading it.
    if (Result<> entry = read_entry(cursor, entries_); !entry)
      return std::move(entry).in(fmt::format(
          "directory entry {} of {} at byte {}", i + 1, end_.entries, at));
  }
  if (!cursor.at_end())
    end_.findings.push_back(
        {.kind = "zip_hidden_entries",
         .severity = Severity::kError,
         .message =
             fmt::format("{} bytes of the directory come after the {} entries "
                         "that it states; some readers see more entries there",
                         cursor.remaining(), end_.entries),
         .where =
             fmt::format("byte {}", end_.directory.offset + cursor.offset())});
  return {};
}

void ZipDirectory::index_names() {
  names_.reserve(entries_.size());
  for (const ZipEntry& entry : entries_)
    names_.push_back({hash_ignoring_case(entry.name),
                      static_cast<std::uint32_t>(names_.size())});
  sort_by_hash(names_, [this](const NameKey& a, const NameKey& b) {
    if (a.hash != b.hash)
      return a.hash < b.hash;
    const std::string_view left = entries_[a.entry].name;
    const std::string_view right = entries_[b.entry].name;
    if (const auto order = compare_ignoring_case(left, right); order != 0)
      return order < 0;
    if (const int order = left.compare(right); order != 0)
      return order < 0;
    return a.entry < b.entry;
  });
}

void ZipDirectory::look_around() {
  if (start() > 0)
    end_.findings.push_back(
        {.kind = "zip_prefix",
         .severity = Severity::kWarning,
         .message = fmt::format(
             "{} bytes come before the archive; torch refuses such a file",
             start()),
         .where = "byte 0"});
  if (trailing_bytes() > 0)
    end_.findings.push_back(
        {.kind = "zip_trailing_bytes",
         .severity = Severity::kWarning,
         .message = fmt::format("{} bytes follow the end of the archive",
                                trailing_bytes()),
         .where = fmt::format("byte {}", end_.archive.end())});
}

void ZipDirectory::look_for_duplicates() {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  const ZipEntry* collision = nullptr;
  for (std::size_t i = 1; i < names_.size(); ++i) {
    const std::uint64_t entry = names_[i].entry;
    if (names_[i].hash != names_[i - 1].hash)
      continue;
    const ZipEntry& before = entries_[names_[i - 1].entry];
    if (entries_[entry].name != before.name) {
      if (compare_ignoring_case(entries_[entry].name, before.name) == 0)
        collision = &entries_[entry];
      continue;
    }
    first = count == 0 ? entry : std::min(first, entry);
    ++count;
  }
  if (collision != nullptr)
    end_.findings.push_back(
        {.kind = "zip_case_collision",
         .severity = Severity::kWarning,
         .message = fmt::format("{} differs from another only in the case of "
                                "letters, and some readers take either for "
                                "the other",
                                quoted(collision->name)),
         .where = std::string(collision->name)});
  if (count > 0)
    end_.findings.push_back(
        {.kind = "zip_duplicate_entry",
         .severity = Severity::kError,
         .message =
             fmt::format("{} appears in the directory more than once; readers "
                         "may see different contents{}",
                         quoted(entries_[first].name), and_others(count)),
         .where = std::string(entries_[first].name)});
}

void ZipDirectory::look_for_overlaps() {
  std::vector<const ZipEntry*> by_offset;  // empty if the entries are sorted
  if (!std::ranges::is_sorted(entries_, {}, &ZipEntry::header_offset)) {
    by_offset.reserve(entries_.size());
    for (const ZipEntry& entry : entries_)
      by_offset.push_back(&entry);
    std::ranges::stable_sort(by_offset, {}, &ZipEntry::header_offset);
  }

  std::uint64_t count = 0;
  const ZipEntry* first = nullptr;
  std::uint64_t next = end_.directory.offset - end_.archive.offset;
  for (std::size_t i = entries_.size(); i-- > 0;) {
    const ZipEntry& entry = by_offset.empty() ? entries_[i] : *by_offset[i];
    // Without padding and descriptor, which only the local header states.
    const auto end = checked_add(entry.compressed_size,
                                 kLocalHeaderSize + entry.name.size());
    if (entry.header_offset > next || !end ||
        *end > next - entry.header_offset) {
      first = &entry;
      ++count;
    }
    next = std::min(next, entry.header_offset);
  }
  if (count > 0)
    end_.findings.push_back(
        {.kind = "zip_overlap",
         .severity = Severity::kError,
         .message = fmt::format("{} reaches into the entry after it or the "
                                "directory{}",
                                quoted(first->name), and_others(count)),
         .where = std::string(first->name)});
}

std::optional<std::string_view> ZipDirectory::root() const {
  if (entries_.empty())
    return std::nullopt;
  const std::string_view name = entries_.front().name;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos)
    return std::nullopt;
  return name.substr(0, slash);
}

const ZipEntry* ZipDirectory::find_last(std::string_view name,
                                        bool exact) const {
  const std::uint32_t hash = hash_ignoring_case(name);
  const auto after =
      std::ranges::partition_point(names_, [&](const NameKey& key) {
        if (key.hash != hash)
          return key.hash < hash;
        const std::string_view other = entries_[key.entry].name;
        const auto order = compare_ignoring_case(other, name);
        return exact && order == 0 ? other <= name : order <= 0;
      });
  if (after == names_.begin() || std::prev(after)->hash != hash)
    return nullptr;
  const ZipEntry& entry = entries_[std::prev(after)->entry];
  const bool same =
      exact ? entry.name == name : compare_ignoring_case(entry.name, name) == 0;
  return same ? &entry : nullptr;
}

const ZipEntry* ZipDirectory::find(std::string_view name) const {
  return find_last(name, true);
}

const ZipEntry* ZipDirectory::find_ignoring_case(std::string_view name) const {
  const ZipEntry* exact = find_last(name, true);
  return exact != nullptr ? exact : find_last(name, false);
}

Result<Extent> ZipDirectory::extent(const ZipEntry& entry) const {
  const auto at = checked_add(start(), entry.header_offset);
  if (!at || *at > file_.size() || file_.size() - *at < kLocalHeaderSize)
    return fail(ErrorKind::kCorrupt,
                "{}: its header should lie at offset {}, beyond the archive's "
                "end",
                quoted(entry.name), entry.header_offset);
  const Bytes header = file_.subspan(*at);
  if (const std::optional<Extent> found = extent_by(entry, header))
    return *found;
  if (!as_text(header).starts_with(kLocalSignature))
    return fail(ErrorKind::kCorrupt,
                "{}: its header should lie at offset {}, but there is none",
                quoted(entry.name), entry.header_offset);
  const std::uint64_t name_size =
      load_little_endian<std::uint16_t>(header.data() + 26);
  const std::uint64_t extra_size =
      load_little_endian<std::uint16_t>(header.data() + 28);
  const std::uint64_t after_header = header.size() - kLocalHeaderSize;
  if (name_size + extra_size > after_header ||
      entry.compressed_size > after_header - name_size - extra_size)
    return fail(ErrorKind::kCorrupt,
                "{}: its {} bytes reach beyond the archive's end",
                quoted(entry.name), entry.compressed_size);
  return fail(ErrorKind::kCorrupt,
              "{}: its own header calls it '{}'; the archive was damaged or "
              "tampered with",
              quoted(entry.name),
              as_text(header.subspan(kLocalHeaderSize, name_size)));
}

std::optional<Extent> ZipDirectory::extent_by(const ZipEntry& entry,
                                              Bytes header) const {
  const std::uint64_t front = kLocalHeaderSize + entry.name.size();
  if (header.size() < front || !as_text(header).starts_with(kLocalSignature))
    return std::nullopt;
  const auto number = [header](std::size_t at) {
    return load_little_endian<std::uint16_t>(header.data() + at);
  };
  const auto begin =
      checked_add(checked_add(start(), entry.header_offset).value_or(0),
                  front + number(28));
  if (number(26) != entry.name.size() ||
      as_text(header.subspan(kLocalHeaderSize, entry.name.size())) !=
          entry.name ||
      !begin || *begin > file_.size() ||
      entry.compressed_size > file_.size() - *begin)
    return std::nullopt;
  return Extent{*begin, entry.compressed_size};
}

Result<Bytes> ZipDirectory::stored_bytes(const ZipEntry& entry) const {
  const Extent where = TRY(extent(entry));
  return file_.subspan(where.offset, where.size);
}

Result<Contents> ZipDirectory::contents(const ZipEntry& entry) const {
  const Bytes bytes = TRY(stored_bytes(entry));
  TRY(check_entry(entry, bytes.size(), limits_));
  if (entry.method == kStored)
    return Contents{.stored = bytes, .inflated = {}};
  return Contents{
      .stored = {},
      .inflated = TRY(inflate(bytes, entry.size).in(quoted(entry.name)))};
}

}  // namespace postflight
