#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/limits.h"
#include "checkpoint/zip/directory.h"
#include "pickle/builder.h"
#include "pickle/machine.h"
#include "stream/whole_stream.h"

namespace postflight {

// One file of a checkpoint: mapped, for the parts that describe it, and open,
// for reading large parts in pieces. A pipe is read into memory. It is not
// moved, as a Checkpoint has views into it.
class DataFile {
 public:
  // How many files of a checkpoint are kept open; others are opened for each
  // large read, as the usual limits per process are 1024 or 256.
  static constexpr std::size_t kMostKeptOpen = 64;

  static Result<std::unique_ptr<DataFile>> open(
      const std::filesystem::path& path, const Limits& limits,
      bool kept_open = true);

  // Bytes in memory, which outlive it.
  static std::unique_ptr<DataFile> over(Bytes bytes,
                                        const std::filesystem::path& name,
                                        const Limits& limits);
  // A stretch of another file, which outlives it.
  static Result<std::unique_ptr<DataFile>> part(const DataFile& whole,
                                                const Extent& extent);
  // What such a stretch was decoded to.
  static std::unique_ptr<DataFile> in_memory(const DataFile& whole,
                                             WholeStream bytes);

  const std::filesystem::path& path() const { return path_; }
  Bytes bytes() const { return bytes_; }
  std::uint64_t size() const { return bytes_.size(); }
  bool is_part() const { return whole_ != nullptr; }
  const Limits& limits() const { return limits_; }

  // All bytes of the file at path(), if it is mapped and not a part of one.
  Bytes mapped_bytes() const { return map_ ? bytes_ : Bytes(); }

  // Without a TruncationGuard, replaces the mapping before `begin` and from
  // `end` on by copies, see MappedFile::copy_in(): what is not tensors.
  Result<> copy_edges(std::uint64_t begin, std::uint64_t end) const;

  // As MappedFile::shrank().
  bool shrank() const { return map_ && map_->shrank(); }

  // Fills `to` with the bytes at `offset`; safe from any thread.
  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // The same for several spans that are consecutive in the file.
  Result<> read_at(std::uint64_t offset,
                   std::span<const std::span<std::byte>> to) const;

  // The same bytes in the mapping, populated before they are touched. Empty if
  // the file has become too short or the kernel (before 5.14) cannot populate
  // it; read_at() then says what is wrong.
  std::optional<Bytes> mapped_at(std::uint64_t offset,
                                 std::uint64_t size) const;

  // Where the bytes of an archive's entry are in this file, compressed or not.
  Result<Extent> extent(const ZipEntry& entry) const;

  std::optional<ZipDirectory> zip;
  // Entries that were found without a directory.
  std::vector<ZipEntry> salvaged;
  std::vector<Extent> salvaged_extents;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::unique_ptr<Builder>> builders;   // of JSON values
  std::vector<std::unique_ptr<Contents>> inflated;  // that pickles are in

 private:
  DataFile(std::filesystem::path path, std::optional<MappedFile> map,
           std::optional<Descriptor> descriptor, const Limits& limits);

  // For an entry far from the previous one, without touching the mapping.
  std::optional<Extent> far_extent(const ZipEntry& entry) const;
  // Opens the mapped file again.
  Result<Descriptor> opened_again() const;

  std::filesystem::path path_;
  std::optional<MappedFile> map_;
  std::optional<WholeStream> memory_;
  Bytes bytes_;
  const DataFile* whole_ = nullptr;  // which this is a part of
  std::uint64_t begin_ = 0;          // in the whole
  std::optional<Descriptor> descriptor_;
  bool opens_again_ = false;
  mutable std::atomic<std::uint64_t> last_header_ = 0;
  Limits limits_;
};

}  // namespace postflight
