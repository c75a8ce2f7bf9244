// An archive byte by byte: every byte is part of a header, its padding, a
// record, the descriptor after it, the directory or the records at the end.
// torch checks none of it.

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/worker_pool.h"
#include "checkpoint/crc32.h"
#include "checkpoint/storage_reader.h"
#include "checkpoint/verification.h"
#include "checkpoint/zip_format.h"

namespace postflight {
namespace {

constexpr std::uint16_t kHasDescriptor = 8;
constexpr std::uint16_t kTorchPadding = 0x4246;  // "FB"

class ArchiveCheck {
 public:
  ArchiveCheck(const DataFile& file, Verification& result)
      : file_(file),
        zip_(*file.zip),
        name_(file.path().filename().string()),
        result_(result) {}

  void layout() {
    std::vector<const ZipEntry*> order;
    for (const ZipEntry& entry : zip_.entries())
      order.push_back(&entry);
    std::ranges::stable_sort(order, {}, &ZipEntry::header_offset);
    std::uint64_t at = zip_.start();
    for (const ZipEntry* const entry : order) {
      const std::uint64_t header = zip_.start() + entry->header_offset;
      if (header != at)
        stray(at, header, fmt::format("before record {}", entry->name));
      const Result<Extent> extent = zip_.extent(*entry);
      if (!extent) {
        report("record_unreadable", Severity::kError,
               std::string(extent.error().message()), std::string(entry->name));
        at = header;
        continue;
      }
      check_extra(*entry, header, extent->offset);
      at = after_descriptor(*entry, header, *extent);
      if (entry->made_by != 0 || entry->needed != 0)
        ++foreign_;
    }
    if (at != zip_.directory().offset)
      stray(at, zip_.directory().offset, "before the directory");
    check_end();
    if (foreign_ == order.size() && padded_ == 0 && !order.empty())
      report("repacked", Severity::kWarning,
             "it was packed by another zip writer than torch's", name_);
  }

  void crcs(const Checkpoint& checkpoint, const VerifyOptions& options) {
    // Large records are shared out: their CRCs can be joined.
    constexpr std::uint64_t kShare = 64 << 20;
    struct Job {
      const ZipEntry* entry;
      std::uint64_t offset;
      std::uint64_t size;
    };
    std::vector<Job> jobs;
    for (const ZipEntry& entry : zip_.entries()) {
      ++result_.records;
      if (entry.size == 0) {
        ++result_.crc_good;
        continue;
      }
      if (entry.crc32 == 0) {
        ++result_.crc_absent;
        continue;
      }
      if (entry.method != 0) {
        jobs.push_back({&entry, 0, entry.size});
        continue;
      }
      for (std::uint64_t done = 0; done < entry.size; done += kShare)
        jobs.push_back({&entry, done, std::min(kShare, entry.size - done)});
    }
    // Entries made to overlap could ask for the same bytes without end.
    std::uint64_t left = file_.size() * 4 + (std::uint64_t{4} << 30);
    std::uint32_t crc = 0;
    const WorkerPool pool(options.threads);
    const Result<> done = pool.map_ordered(
        jobs.size(),
        [&](std::size_t i) {
          return crc_of(checkpoint, *jobs[i].entry, jobs[i].offset,
                        jobs[i].size, options);
        },
        [&](std::size_t i, Result<std::uint32_t> part) -> Result<> {
          const Job& job = jobs[i];
          if (job.size > left)
            return fail(ErrorKind::kRefused,
                        "the records come to far more bytes than the file "
                        "has; not all were checked");
          left -= job.size;
          if (!part) {
            ++result_.crc_bad;
            report("record_unreadable", Severity::kError,
                   std::string(part.error().message()),
                   std::string(job.entry->name));
            return {};
          }
          crc = job.offset == 0 ? *part : crc32_joined(crc, *part, job.size);
          result_.bytes += job.size;
          if (job.offset + job.size == job.entry->size)
            conclude(*job.entry, crc);
          return {};
        });
    if (!done)
      report("entries_overlap", Severity::kError,
             std::string(done.error().message()), name_);
    if (result_.crc_absent > 0)
      report("crc_absent", Severity::kNote,
             fmt::format("{} of {} records have no CRC, so that changes in "
                         "them cannot be seen",
                         result_.crc_absent, result_.records),
             name_);
  }

  // Both halves of what torch makes of the names and CRCs of all records.
  void serialization_id() {
    const auto root = zip_.root();
    const ZipEntry* const entry =
        root ? zip_.find(fmt::format("{}/.data/serialization_id", *root))
             : nullptr;
    constexpr std::uint64_t kDigits = 40;
    if (entry == nullptr || entry->size != kDigits)
      return;
    const Result<Contents> contents = zip_.contents(*entry);
    if (!contents)
      return;
    const std::string_view stated = as_text(contents->bytes());
    const auto combine = [](std::uint64_t seed, std::uint64_t value) {
      return seed ^ (value + 0x9e3779b9 + (seed << 6) + (seed >> 2));
    };
    // torch walks its set of names in the order of libstdc++'s table.
    std::unordered_set<std::string> names;
    std::uint64_t crcs = 0;
    bool any_crc = false;
    for (const ZipEntry& one : zip_.entries()) {
      if (&one == entry)
        continue;
      names.insert(std::string(
          one.name.substr(std::min(root->size() + 1, one.name.size()))));
      if (one.size == 0)
        continue;
      crcs = combine(crcs, one.crc32);
      any_crc |= one.crc32 != 0;
    }
    std::uint64_t hash = 0;
    for (const std::string& name : names)
      hash = combine(hash, std::hash<std::string>()(name));
    if (stated.substr(0, 20) != fmt::format("{:020}", hash))
      report("serialization_id_names", Severity::kWarning,
             "its records are not those it was written with: one was added, "
             "dropped or renamed",
             name_);
    if (any_crc && stated.substr(20) != fmt::format("{:020}", crcs))
      report("serialization_id_contents", Severity::kWarning,
             "its records have other CRCs than those it was written with: one "
             "was exchanged or changed",
             name_);
  }

  // Storages that no tensor uses.
  void unused(const Checkpoint& checkpoint) {
    const auto root = zip_.root();
    if (!root)
      return;
    std::unordered_set<const ZipEntry*> used;
    for (const Storage& storage : checkpoint.storages())
      if (storage.entry != nullptr)
        used.insert(storage.entry);
    const std::string prefix = fmt::format("{}/data/", *root);
    std::uint64_t count = 0;
    std::string first;
    for (const ZipEntry& entry : zip_.entries())
      if (entry.name.starts_with(prefix) && !used.contains(&entry) &&
          !entry.name.ends_with("_config.json") && count++ == 0)
        first = entry.name;
    if (count > 0)
      report(
          "unused_record", Severity::kWarning,
          fmt::format(
              "no tensor uses it{}",
              count > 1 ? fmt::format(" (and {} more such)", count - 1) : ""),
          first);
  }

 private:
  void report(std::string kind, Severity severity, std::string message,
              std::string where) {
    constexpr std::size_t kMostFindings = 10'000;
    if (result_.findings.size() < kMostFindings)
      result_.findings.push_back(
          {std::move(kind), severity, std::move(message), std::move(where)});
  }

  void stray(std::uint64_t from, std::uint64_t to, const std::string& where) {
    if (to < from)
      return;  // an overlap, which the directory has reported
    report("stray_bytes", Severity::kError,
           fmt::format("{} bytes {} belong to no record", to - from, where),
           fmt::format("byte {}", from));
  }

  // The blocks after a local header's name: sizes, torch's padding of Zs.
  void check_extra(const ZipEntry& entry, std::uint64_t header,
                   std::uint64_t data) {
    const std::uint64_t begin = header + kLocalHeaderSize + entry.name.size();
    Cursor cursor(file_.bytes().subspan(begin, data - begin));
    while (cursor.remaining() >= 4) {
      const auto kind = *cursor.little_endian<std::uint16_t>();
      const auto size = *cursor.little_endian<std::uint16_t>();
      const std::uint64_t at = begin + cursor.offset();
      const Result<Bytes> block = cursor.take(size);
      if (!block) {
        report("header_damaged", Severity::kError,
               "the fields of its header run past the header's end",
               std::string(entry.name));
        return;
      }
      if (kind == kTorchPadding) {
        ++padded_;
        const auto changed = std::ranges::find_if(
            *block, [](std::byte byte) { return byte != std::byte{'Z'}; });
        if (changed != block->end())
          report("padding_changed", Severity::kError,
                 "the padding before its bytes is not as torch writes it: the "
                 "file was damaged, or something is hidden there",
                 fmt::format("{}, byte {}", entry.name,
                             at + static_cast<std::uint64_t>(changed -
                                                             block->begin())));
      } else if (kind != kZip64Extra) {
        ++other_extra_;
      }
    }
    if (cursor.remaining() > 0)
      report("header_damaged", Severity::kError,
             "bytes of its header belong to no field", std::string(entry.name));
    const std::byte* const local = file_.bytes().data() + header;
    const auto flags = load_little_endian<std::uint16_t>(local + 6);
    const auto method = load_little_endian<std::uint16_t>(local + 8);
    const auto crc = load_little_endian<std::uint32_t>(local + 14);
    if (flags != entry.flags || method != entry.method ||
        ((flags & kHasDescriptor) == 0 && crc != entry.crc32))
      report("header_mismatch", Severity::kError,
             "its own header and the directory disagree",
             std::string(entry.name));
  }

  std::uint64_t after_descriptor(const ZipEntry& entry, std::uint64_t header,
                                 const Extent& extent) {
    const std::byte* const local = file_.bytes().data() + header;
    const auto flags = load_little_endian<std::uint16_t>(local + 6);
    const std::uint64_t end = extent.end();
    if ((flags & kHasDescriptor) == 0)
      return end;
    Cursor cursor(file_.bytes().subspan(end));
    const Result<Bytes> four = cursor.take(4);
    const bool marked = four && as_text(*four) == kDescriptorSignature;
    const std::uint64_t skip = marked ? 4 : 0;
    const bool wide = extent.offset - header - kLocalHeaderSize >= 4 &&
                      is_wide(entry, header, extent.offset);
    const std::uint64_t size = skip + (wide ? 20 : 12);
    if (file_.size() - end < size ||
        load_little_endian<std::uint32_t>(file_.bytes().data() + end + skip) !=
            entry.crc32)
      report("descriptor_mismatch", Severity::kError,
             "what stands after its bytes is not what the directory says",
             std::string(entry.name));
    return std::min<std::uint64_t>(end + size, file_.size());
  }

  bool is_wide(const ZipEntry& entry, std::uint64_t header,
               std::uint64_t data) const {
    const std::uint64_t begin = header + kLocalHeaderSize + entry.name.size();
    return data - begin >= 4 &&
           load_little_endian<std::uint16_t>(file_.bytes().data() + begin) ==
               kZip64Extra;
  }

  // After the directory: two records of 64 bits, the old one, a comment.
  void check_end() {
    constexpr std::uint64_t kEnd = 22;
    constexpr std::uint64_t kWideEnd = 56 + 20;
    const Bytes rest = file_.bytes().subspan(
        zip_.directory().end(), zip_.archive().end() - zip_.directory().end());
    const std::string_view text = as_text(rest);
    std::uint64_t at = text.starts_with(kZip64EndSignature) ? kWideEnd : 0;
    if (rest.size() < at + kEnd || !text.substr(at).starts_with(kEndSignature))
      stray(zip_.directory().end(), zip_.archive().end(),
            "after the directory");
  }

  Result<std::uint32_t> crc_of(const Checkpoint& checkpoint,
                               const ZipEntry& entry, std::uint64_t offset,
                               std::uint64_t size,
                               const VerifyOptions& options) const {
    Storage record;
    record.size = entry.size;
    record.entry = &entry;
    for (std::uint32_t i = 0; i < checkpoint.files.size(); ++i)
      if (checkpoint.files[i].get() == &file_)
        record.file = i;
    StorageReader reader = TRY(StorageReader::open(checkpoint, record));
    std::vector<std::byte> room(
        std::min<std::uint64_t>(size, std::uint64_t{256} << 10));
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < size; done += room.size()) {
      const std::span<std::byte> piece = std::span(room).first(
          std::min<std::uint64_t>(room.size(), size - done));
      TRY(reader.read_at(offset + done, piece));
      crc = crc32_of(piece, crc);
      if (options.progress)
        options.progress(piece.size());
    }
    return crc;
  }

  void conclude(const ZipEntry& entry, std::uint32_t crc) {
    if (crc == entry.crc32) {
      ++result_.crc_good;
      return;
    }
    ++result_.crc_bad;
    report("crc_mismatch", Severity::kError,
           fmt::format("its CRC-32 is {:08x}, but {:08x} when it was written; "
                       "its bytes have changed since",
                       crc, entry.crc32),
           std::string(entry.name));
  }

  const DataFile& file_;
  const ZipDirectory& zip_;
  const std::string name_;
  Verification& result_;
  std::size_t foreign_ = 0;
  std::size_t padded_ = 0;
  std::size_t other_extra_ = 0;
};

}  // namespace

void verify_archive(const Checkpoint& checkpoint, const DataFile& file,
                    const VerifyOptions& options, Verification& result) {
  ArchiveCheck check(file, result);
  check.layout();
  check.crcs(checkpoint, options);
  check.serialization_id();
  check.unused(checkpoint);
}

}  // namespace postflight
