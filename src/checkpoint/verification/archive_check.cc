// Checks the records of an archive against their CRCs, the serialization id
// that torch computed from them, and the tensors. torch checks none of these.

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/worker_pool.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/verification/record_names.h"
#include "checkpoint/verification/verification.h"
#include "checkpoint/zip/crc32.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

class ArchiveCheck {
 public:
  ArchiveCheck(const DataFile& file, Verification& result)
      : file_(file),
        zip_(*file.zip),
        name_(file.path().filename().string()),
        result_(result) {}

  void crcs(const Checkpoint& checkpoint, const VerifyOptions& options) {
    // Large records are divided among threads, as CRCs can be combined.
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
    // Overlapping entries could require the same bytes again and again.
    std::uint64_t left = file_.size() * 4 + (std::uint64_t{4} << 30);
    std::uint32_t crc = 0;
    const ZipEntry* failed = nullptr;
    const WorkerPool pool(checkpoint.context().threads);
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
                        "the records add up to far more bytes than the file "
                        "has; not all were checked");
          left -= job.size;
          if (job.entry == failed)
            return {};
          if (!part) {
            failed = job.entry;
            ++result_.crc_bad;
            if (zip_.extent(
                    *job.entry))  // otherwise verify_layout() reported it
              result_.report("record_unreadable", Severity::kError,
                             std::string(part.error().message()),
                             std::string(job.entry->name));
            return {};
          }
          crc = job.offset == 0 ? *part : crc32_joined(crc, *part, job.size);
          result_.bytes += job.size;
          if (job.offset + job.size == job.entry->size)
            conclude(checkpoint, *job.entry, crc);
          return {};
        });
    if (!done)
      result_.report("entries_overlap", Severity::kError,
                     std::string(done.error().message()), name_);
    if (result_.crc_absent > 0)
      result_.report("crc_absent", Severity::kNote,
                     fmt::format("{} of {} records have no CRC, so changes in "
                                 "them would go unnoticed",
                                 result_.crc_absent, result_.records),
                     name_);
  }

  // The id has two halves: a hash of the names and one of the CRCs of all
  // records.
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
    std::vector<std::string> names;
    std::uint64_t crcs = 0;
    bool any_crc = false;
    for (const ZipEntry& one : zip_.entries()) {
      if (&one == entry)
        continue;
      names.emplace_back(
          one.name.substr(std::min(root->size() + 1, one.name.size())));
      if (one.size == 0)
        continue;
      crcs = hash_joined(crcs, one.crc32);
      any_crc |= one.crc32 != 0;
    }
    const auto is_of = [&](CppLibrary library) {
      return stated.substr(0, 20) ==
             fmt::format("{:020}", hash_of_names(names, library));
    };
    using enum CppLibrary;
    if (!is_of(kLibstdcxx) && !is_of(kLibcxx) && !is_of(kMsvc))
      result_.report("serialization_id_names", Severity::kWarning,
                     "its records are not those it was written with: one was "
                     "added, removed or renamed",
                     name_);
    if (any_crc && stated.substr(20) != fmt::format("{:020}", crcs))
      result_.report("serialization_id_contents", Severity::kWarning,
                     "its records have other CRCs than when it was written: "
                     "one was replaced or changed",
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
      result_.report(
          "unused_record", Severity::kWarning,
          fmt::format(
              "no tensor uses it{}",
              count > 1 ? fmt::format(" (and {} more such)", count - 1) : ""),
          first);
  }

 private:
  Result<std::uint32_t> crc_of(const Checkpoint& checkpoint,
                               const ZipEntry& entry, std::uint64_t offset,
                               std::uint64_t size,
                               const VerifyOptions& options) const {
    Storage record;
    record.size = entry.size;
    record.entry = &entry;
    record.file = static_cast<std::uint32_t>(
        std::ranges::find(checkpoint.files(), &file_) -
        checkpoint.files().begin());
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

  void conclude(const Checkpoint& checkpoint, const ZipEntry& entry,
                std::uint32_t crc) {
    if (crc == entry.crc32) {
      ++result_.crc_good;
      return;
    }
    ++result_.crc_bad;
    result_.report("crc_mismatch", Severity::kError,
                   crc_mismatch(crc, entry.crc32) + users_of(checkpoint, entry),
                   std::string(entry.name));
  }

  // "; it holds tensors a, b and 3 more", or empty.
  std::string users_of(const Checkpoint& checkpoint, const ZipEntry& entry) {
    if (users_.empty())
      find_users(checkpoint);
    const auto found = users_.find(&entry);
    if (found == users_.end())
      return "";
    const Users& users = found->second;
    std::string text =
        users.count == 1 ? "; it holds tensor " : "; it holds tensors ";
    for (std::size_t i = 0; i < users.first.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ",
                          checkpoint.path_of(users.first[i]));
    if (users.count > users.first.size())
      text += fmt::format(" and {} more", users.count - users.first.size());
    return text;
  }

  void find_users(const Checkpoint& checkpoint) {
    constexpr std::size_t kMostNamed = 3;
    // A tensor that is the root has no name.
    for (std::uint32_t i = 1; i < checkpoint.nodes().size(); ++i) {
      const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[i]);
      if (tensor == nullptr || tensor->storage == kNoIndex)
        continue;
      Users& users = users_[checkpoint.storages()[tensor->storage].entry];
      if (users.count++ < kMostNamed)
        users.first.push_back(i);
    }
  }

  struct Users {
    std::uint64_t count = 0;
    std::vector<std::uint32_t> first;  // nodes
  };

  const DataFile& file_;
  const ZipDirectory& zip_;
  const std::string name_;
  Verification& result_;
  std::unordered_map<const ZipEntry*, Users>
      users_;  // filled when first needed
};

}  // namespace

void verify_archive(const Checkpoint& checkpoint, const DataFile& file,
                    const VerifyOptions& options, Verification& result) {
  verify_layout(file, checkpoint.format() != Format::kNumpy, result);
  ArchiveCheck check(file, result);
  check.crcs(checkpoint, options);
  check.serialization_id();
  check.unused(checkpoint);
}

}  // namespace postflight
