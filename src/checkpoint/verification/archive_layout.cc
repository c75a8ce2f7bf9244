// What every byte of an archive belongs to, and whether duplicate statements
// agree. A zip states most things more than once: in the header before a
// record, in the descriptor after it, in the directory and in up to three
// records at the end. Readers differ in which of them they use, so if they
// disagree, different readers see different files.
//
// torch's writer has one way to fill each field, so in its archives even a
// field that no reader uses reveals damage. A difference in all records is the
// habit of another writer; a difference in some records is a later change.

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "checkpoint/model/data_file.h"
#include "checkpoint/verification/verification.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

constexpr std::uint16_t kHasDescriptor = 0x0008;
constexpr std::uint16_t kUtf8 = 0x0800;
constexpr std::uint16_t kTorchPadding = 0x4246;  // "FB"
constexpr std::uint16_t kDeflateVersion = 20;

// The fixed part of the header before a record.
struct LocalHeader {
  explicit LocalHeader(const std::byte* at)
      : version(load_little_endian<std::uint16_t>(at + 4)),
        flags(load_little_endian<std::uint16_t>(at + 6)),
        method(load_little_endian<std::uint16_t>(at + 8)),
        modified(load_little_endian<std::uint32_t>(at + 10)),
        crc32(load_little_endian<std::uint32_t>(at + 14)),
        compressed_size(load_little_endian<std::uint32_t>(at + 18)),
        size(load_little_endian<std::uint32_t>(at + 22)) {}

  bool has_descriptor() const { return (flags & kHasDescriptor) != 0; }

  std::uint16_t version;
  std::uint16_t flags;
  std::uint16_t method;
  std::uint32_t modified;
  std::uint32_t crc32;
  std::uint64_t compressed_size;
  std::uint64_t size;
};

// The extra fields after a local header's name.
struct Extra {
  std::optional<Bytes> zip64;
  std::size_t padded = 0;
  std::size_t others = 0;
};

// What the directory states about a record in addition to ZipEntry.
struct Attributes {
  std::uint64_t extra_size = 0;
  bool any = false;  // a comment, a disk, attributes
};

class ArchiveLayout {
 public:
  ArchiveLayout(const DataFile& file, bool torchs, Verification& result)
      : file_(file),
        zip_(*file.zip),
        name_(file.path().filename().string()),
        torchs_(torchs),
        result_(result) {}

  void check() {
    read_attributes();
    std::vector<std::size_t> order(zip_.entries().size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::ranges::stable_sort(order, {}, [this](std::size_t i) {
      return zip_.entries()[i].header_offset;
    });
    // Where the next record should begin; unknown after one that is damaged.
    std::uint64_t at = zip_.start();
    bool known = true;
    for (const std::size_t i : order) {
      const ZipEntry& entry = zip_.entries()[i];
      const Result<Extent> extent = zip_.extent(entry);
      if (!extent) {
        result_.report("record_unreadable", Severity::kError,
                       std::string(extent.error().message()),
                       std::string(entry.name));
        known = false;
        continue;
      }
      const std::uint64_t header = zip_.header_at(entry);
      if (known)
        account(at, header, fmt::format("before record {}", entry.name));
      at = check_record(entry, attributes_[i], header, *extent);
      known = true;
    }
    if (known)
      account(at, zip_.directory().offset, "before the directory");
    check_end();
    conclude(order.size());
  }

 private:
  // The directory has been read once, so these are in bounds.
  void read_attributes() {
    Cursor cursor(
        file_.bytes().subspan(zip_.directory().offset, zip_.directory().size));
    for (const ZipEntry& entry : zip_.entries()) {
      Attributes& one = attributes_.emplace_back();
      const Result<Bytes> fixed = cursor.take(kEntrySize);
      if (!fixed)
        continue;
      const std::byte* const at = fixed->data();
      one.extra_size = load_little_endian<std::uint16_t>(at + 30);
      const auto comment = load_little_endian<std::uint16_t>(at + 32);
      one.any = std::ranges::any_of(fixed->subspan(32, 10), [](std::byte byte) {
        return byte != std::byte{0};
      });
      if (!cursor.skip(entry.name.size() + one.extra_size + comment))
        return attributes_.resize(zip_.entries().size());
    }
  }

  // Reports bytes between `at`, where something should begin, and `begin`,
  // where it does.
  void account(std::uint64_t at, std::uint64_t begin,
               const std::string& where) {
    if (at < begin)
      result_.report(
          "stray_bytes", Severity::kError,
          fmt::format("{} bytes {} belong to no record", begin - at, where),
          fmt::format("byte {}", at));
    else if (at > begin &&
             std::ranges::none_of(zip_.findings(), [](const Finding& finding) {
               return finding.kind == "zip_overlap";
             }))
      result_.report(
          "zip_overlap", Severity::kError,
          fmt::format("{} bytes {} are claimed twice", at - begin, where),
          fmt::format("byte {}", begin));
  }

  // Returns where it ends, including its descriptor.
  std::uint64_t check_record(const ZipEntry& entry,
                             const Attributes& attributes, std::uint64_t header,
                             const Extent& extent) {
    const LocalHeader local(file_.bytes().data() + header);
    const Extra extra = read_extra(
        entry, header + kLocalHeaderSize + entry.name.size(), extent.offset);
    const bool agrees = agree(entry, local, extra);
    if (!agrees)
      result_.report("header_mismatch", Severity::kError,
                     "its own header and the directory disagree",
                     std::string(entry.name));
    if (is_torchs(entry, local, extra))
      compare_with_torch(entry, attributes, local, extra, agrees);
    else if (foreign_++ == 0)
      first_foreign_ = entry.name;
    return local.has_descriptor()
               ? after_descriptor(entry, extent.end(), extra.zip64.has_value())
               : extent.end();
  }

  // The extra fields after a local header's name: sizes, torch's padding of Zs.
  Extra read_extra(const ZipEntry& entry, std::uint64_t begin,
                   std::uint64_t data) {
    Extra found;
    Cursor cursor(file_.bytes().subspan(begin, data - begin));
    while (cursor.remaining() >= 4) {
      const auto kind = *cursor.little_endian<std::uint16_t>();
      const auto size = *cursor.little_endian<std::uint16_t>();
      const std::uint64_t at = begin + cursor.offset();
      const Result<Bytes> block = cursor.take(size);
      if (!block) {
        result_.report("header_damaged", Severity::kError,
                       "the fields of its header run past the header's end",
                       std::string(entry.name));
        return found;
      }
      if (kind == kTorchPadding) {
        ++found.padded;
        check_padding(entry, *block, at);
      } else if (kind == kZip64Extra && !found.zip64) {
        found.zip64 = *block;
      } else {
        ++found.others;
      }
    }
    if (cursor.remaining() > 0)
      result_.report("header_damaged", Severity::kError,
                     "bytes of its header belong to no field",
                     std::string(entry.name));
    return found;
  }

  void check_padding(const ZipEntry& entry, Bytes block, std::uint64_t at) {
    const auto changed = std::ranges::find_if(
        block, [](std::byte byte) { return byte != std::byte{'Z'}; });
    if (changed != block.end())
      result_.report(
          "padding_changed", Severity::kError,
          "the padding before its bytes is not as torch writes it: the "
          "file was damaged, or something is hidden there",
          fmt::format(
              "{}, byte {}", entry.name,
              at + static_cast<std::uint64_t>(changed - block.begin())));
  }

  // A header whose record has a descriptor was written before the CRC and the
  // sizes were known and may leave them out; 64-bit sizes are in an extra
  // field.
  static bool agree(const ZipEntry& entry, const LocalHeader& local,
                    const Extra& extra) {
    if (local.flags != entry.flags || local.method != entry.method)
      return false;
    const bool later = local.has_descriptor();
    const auto says = [later](std::uint64_t stated, std::uint64_t right) {
      return stated == right || (later && stated == 0);
    };
    if (!says(local.crc32, entry.crc32))
      return false;
    Cursor wide(extra.zip64.value_or(Bytes()));
    for (const auto& [narrow, right] :
         {std::pair(local.size, entry.size),
          std::pair(local.compressed_size, entry.compressed_size)}) {
      if (says(narrow, right))
        continue;
      if (narrow != kSaturated)
        return false;
      const Result<std::uint64_t> stated = wide.little_endian<std::uint64_t>();
      if (!stated || !says(*stated, right))
        return false;
    }
    return true;
  }

  static std::uint16_t torchs_version(const ZipEntry& entry) {
    return entry.method == kStored ? 0 : kDeflateVersion;
  }

  // By most of its characteristics, so that damage to one does not hide it.
  static bool is_torchs(const ZipEntry& entry, const LocalHeader& local,
                        const Extra& extra) {
    const std::uint16_t version = torchs_version(entry);
    const std::array marks = {entry.made_by == 0,       entry.needed == version,
                              local.version == version, entry.modified == 0,
                              local.modified == 0,      extra.padded == 1};
    return std::ranges::count(marks, true) >= 4;
  }

  void compare_with_torch(const ZipEntry& entry, const Attributes& attributes,
                          const LocalHeader& local, const Extra& extra,
                          bool agrees) {
    ++own_;
    const std::uint16_t version = torchs_version(entry);
    const std::uint16_t flags = entry.size > 0 ? kUtf8 | kHasDescriptor : kUtf8;
    habit("version", entry, entry.needed == version && entry.made_by == 0);
    habit("header's version", entry, local.version == version);
    habit("time", entry, entry.modified == 0);
    habit("header's time", entry, local.modified == 0);
    habit("attributes", entry, !attributes.any);
    habit("padding", entry, extra.padded == 1 && extra.others == 0);
    habit("directory fields", entry,
          attributes.extra_size == directory_extra(entry));
    habit("header fields", entry, is_torchs_zip64(entry, extra));
    if (!agrees)
      return;  // which was reported
    habit("flags", entry, entry.flags == flags);
    habit("header's sizes", entry,
          local.crc32 == 0 && local.compressed_size == 0 && local.size == 0);
  }

  // The size of the extra field, present only for values that exceed 32 bits.
  static std::uint64_t directory_extra(const ZipEntry& entry) {
    std::uint64_t wide = 0;
    for (const std::uint64_t number :
         {entry.size, entry.compressed_size, entry.header_offset})
      wide += number >= kSaturated ? 8 : 0;
    return wide == 0 ? 0 : 4 + wide;
  }

  // torch also writes the offset of the header, and 0 as the compressed size.
  static bool is_torchs_zip64(const ZipEntry& entry, const Extra& extra) {
    std::vector<std::uint64_t> expected;
    if (entry.size >= kSaturated)
      expected = {entry.size, 0};
    if (entry.header_offset >= kSaturated)
      expected.push_back(entry.header_offset);
    if (!extra.zip64)
      return expected.empty();
    Cursor cursor(*extra.zip64);
    return !expected.empty() &&
           std::ranges::all_of(expected,
                               [&cursor](std::uint64_t number) {
                                 const auto stated =
                                     cursor.little_endian<std::uint64_t>();
                                 return stated && *stated == number;
                               }) &&
           cursor.at_end();
  }

  // Writers differ in whether a signature comes first, and some write 64-bit
  // sizes without an extra field.
  std::uint64_t after_descriptor(const ZipEntry& entry, std::uint64_t end,
                                 bool zip64) {
    const bool marked =
        as_text(file_.bytes().subspan(end)).starts_with(kDescriptorSignature);
    const std::uint64_t skip = marked ? 4 : 0;
    for (const bool wide : {zip64, !zip64}) {
      Cursor cursor(file_.bytes().subspan(end + skip));
      const auto size = [&]() -> Result<std::uint64_t> {
        if (wide)
          return cursor.little_endian<std::uint64_t>();
        return TRY(cursor.little_endian<std::uint32_t>());
      };
      const auto crc = cursor.little_endian<std::uint32_t>();
      const auto compressed = size();
      const auto whole = size();
      if (crc && compressed && whole && *crc == entry.crc32 &&
          *compressed == entry.compressed_size && *whole == entry.size)
        return end + skip + cursor.offset();
    }
    result_.report(
        "descriptor_mismatch", Severity::kError,
        "the data descriptor after its bytes does not match the directory",
        std::string(entry.name));
    return std::min<std::uint64_t>(end + skip + (zip64 ? 20 : 12),
                                   file_.size());
  }

  // After the directory: two 64-bit end records, the 32-bit one, a comment.
  void check_end() {
    constexpr std::uint64_t kEnd = 22;
    constexpr std::uint64_t kZip64End = 56;
    constexpr std::uint64_t kWideEnd = kZip64End + 20;
    const std::uint64_t begin = zip_.directory().end();
    const Bytes rest =
        file_.bytes().subspan(begin, zip_.archive().end() - begin);
    const std::string_view text = as_text(rest);
    const bool wide = text.starts_with(kZip64EndSignature);
    const std::uint64_t at = wide ? kWideEnd : 0;
    if (rest.size() < at + kEnd ||
        !text.substr(at).starts_with(kEndSignature)) {
      account(begin, zip_.archive().end(), "after the directory");
      return;
    }
    if (rest.size() > at + kEnd)
      result_.report("zip_comment", Severity::kWarning,
                     fmt::format("the archive has a comment of {} bytes, which "
                                 "torch never writes",
                                 rest.size() - at - kEnd),
                     fmt::format("byte {}", begin + at + kEnd));
    if (!wide || own_ == 0)
      return;
    constexpr std::uint32_t kVersions = 45 << 16 | 0x031e;
    constexpr std::uint32_t kDisks = 1;
    if (load_little_endian<std::uint32_t>(rest.data() + 12) != kVersions ||
        load_little_endian<std::uint32_t>(rest.data() + kZip64End + 16) !=
            kDisks ||
        load_little_endian<std::uint16_t>(rest.data() + at + 20) !=
            rest.size() - at - kEnd)
      result_.report("zip_end_changed", Severity::kError,
                     "the records at the archive's end are not as torch writes "
                     "them: they were changed since, or damaged",
                     fmt::format("byte {}", begin));
  }

  // Counts records of torch with a field that torch would not write so.
  void habit(std::string_view field, const ZipEntry& entry, bool kept) {
    if (kept)
      return;
    Broken& broken = broken_[field];
    if (broken.count++ == 0)
      broken.first = entry.name;
  }

  void conclude(std::size_t records) {
    for (const auto& [field, broken] : broken_) {
      if (broken.count == own_ && own_ > 1)
        result_.report("other_writer", Severity::kNote,
                       fmt::format("the {} of all its records is not as torch "
                                   "writes it",
                                   field),
                       name_);
      else
        result_.report("header_changed", Severity::kError,
                       fmt::format("its {} is not as torch writes it: it was "
                                   "changed since, or damaged{}",
                                   field, and_more(broken.count)),
                       std::string(broken.first));
    }
    if (!torchs_)
      return;
    if (records > 0 && foreign_ == records)
      result_.report("repacked", Severity::kWarning,
                     "it was packed by a zip writer other than torch's", name_);
    else if (own_ > 0 && foreign_ > 0)
      result_.report("added_record", Severity::kWarning,
                     fmt::format("a zip writer other than torch's added it{}",
                                 and_more(foreign_)),
                     std::string(first_foreign_));
  }

  static std::string and_more(std::size_t count) {
    return count > 1 ? fmt::format(" (and {} more such)", count - 1) : "";
  }

  struct Broken {
    std::size_t count = 0;
    std::string_view first;
  };

  const DataFile& file_;
  const ZipDirectory& zip_;
  const std::string name_;
  const bool torchs_;
  Verification& result_;
  std::vector<Attributes> attributes_;  // by entry
  std::size_t own_ = 0;                 // records that torch wrote
  std::size_t foreign_ = 0;
  std::string_view first_foreign_;
  std::map<std::string_view, Broken> broken_;  // by field
};

}  // namespace

void verify_layout(const DataFile& file, bool torchs, Verification& result) {
  ArchiveLayout(file, torchs, result).check();
}

}  // namespace postflight
