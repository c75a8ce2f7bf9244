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

// One file of a checkpoint: mapped for the parts that describe it, and open to
// be read in pieces for the parts that are large. What came through a pipe is
// in memory as a whole. Stays where it is, for a Checkpoint's views point here.
class DataFile {
 public:
  // How many files of a checkpoint are kept open; more are opened for each
  // large read, as processes may have 1024 open, or 256.
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
  // Bytes that came out of such a stretch.
  static std::unique_ptr<DataFile> in_memory(const DataFile& whole,
                                             WholeStream bytes);

  const std::filesystem::path& path() const { return path_; }
  Bytes bytes() const { return bytes_; }
  std::uint64_t size() const { return bytes_.size(); }
  const Limits& limits() const { return limits_; }

  // Whether it has become shorter since, as MappedFile::shrank() says it.
  bool shrank() const { return map_ && map_->shrank(); }

  // Fills `to` with the bytes at `offset`; safe from any thread.
  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // The same for several stretches that lie one after the other in the file.
  // What has no data() is skipped.
  Result<> read_at(std::uint64_t offset,
                   std::span<const std::span<std::byte>> to) const;

  // The same bytes where they are mapped, brought in before they are touched;
  // nothing if the file has become too short or the kernel (before 5.14) cannot
  // tell, in which case read_at() says what is wrong.
  std::optional<Bytes> mapped_at(std::uint64_t offset,
                                 std::uint64_t size) const;

  // Where the bytes of an archive's entry lie in this file, packed or not.
  Result<Extent> extent(const ZipEntry& entry) const;

  std::optional<ZipDirectory> zip;
  // Entries that were found without a directory.
  std::vector<ZipEntry> salvaged;
  std::vector<Extent> salvaged_extents;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::unique_ptr<Builder>> builders;   // of what JSON says
  std::vector<std::unique_ptr<Contents>> inflated;  // what pickles lie in

 private:
  DataFile(std::filesystem::path path, std::optional<MappedFile> map,
           std::optional<Descriptor> descriptor, const Limits& limits);

  // Of an entry away from the one before, read without touching the mapping.
  std::optional<Extent> far_extent(const ZipEntry& entry) const;
  // The same file as was mapped, opened once more.
  Result<Descriptor> opened_again() const;

  std::filesystem::path path_;
  std::optional<MappedFile> map_;
  std::optional<WholeStream> memory_;
  Bytes bytes_;
  const DataFile* whole_ = nullptr;  // that this is a part of
  std::uint64_t begin_ = 0;          // there
  std::optional<Descriptor> descriptor_;
  bool opens_again_ = false;
  mutable std::atomic<std::uint64_t> last_header_ = 0;
  Limits limits_;
};

}  // namespace postflight
