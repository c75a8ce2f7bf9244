#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/limits.h"
#include "checkpoint/zip_directory.h"
#include "pickle/builder.h"
#include "pickle/machine.h"

namespace postflight {

// One file of a checkpoint: mapped for the parts that describe it, and open to
// be read in pieces for the parts that are large. What came through a pipe is
// in memory as a whole. Stays where it is, for a Checkpoint's views point here.
class DataFile {
 public:
  static Result<std::unique_ptr<DataFile>> open(
      const std::filesystem::path& path, const Limits& limits);

  const std::filesystem::path& path() const { return path_; }
  Bytes bytes() const { return map_.bytes(); }
  std::uint64_t size() const { return map_.bytes().size(); }
  const Limits& limits() const { return limits_; }

  // Fills `to` with the bytes at `offset`; safe from any thread.
  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // The same for several stretches that lie one after the other in the file.
  // What has no data() is skipped.
  Result<> read_at(std::uint64_t offset,
                   std::span<const std::span<std::byte>> to) const;

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
  DataFile(std::filesystem::path path, MappedFile map,
           std::optional<Descriptor> descriptor, const Limits& limits);

  std::filesystem::path path_;
  MappedFile map_;
  std::optional<Descriptor> descriptor_;
  Limits limits_;
};

}  // namespace postflight
