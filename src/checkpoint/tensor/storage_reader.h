#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "checkpoint/model/assembly.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/zip/inflate.h"

namespace postflight {

// The bytes of one storage, wherever they are. A deflated one should be read
// from front to back, as seeking back inflates it from the start again.
class StorageReader {
 public:
  // With `check`, the items of an assembly are checked before they are used.
  static Result<StorageReader> open(const Checkpoint& checkpoint,
                                    const Storage& storage, bool check = false);

  std::uint64_t size() const { return size_; }
  Result<> read_at(std::uint64_t offset, std::span<std::byte> to);

  // Where the bytes are in the file; empty if they are deflated or in memory.
  const std::optional<Extent>& extent() const { return extent_; }
  const DataFile* file() const { return file_; }
  // All of them in memory or mapped, if they are not deflated.
  std::optional<Bytes> view() const;
  // A part of them, as DataFile::mapped_at().
  std::optional<Bytes> mapped_at(std::uint64_t offset,
                                 std::uint64_t size) const;

 private:
  StorageReader() = default;
  std::unique_ptr<InflateStream> inflated_from_start() const;

  const DataFile* file_ = nullptr;
  std::uint64_t size_ = 0;
  Bytes inside_;
  std::optional<Extent> extent_;
  std::optional<Extent> deflated_;
  std::unique_ptr<AssemblyReader> assembled_;
  std::unique_ptr<InflateStream> stream_;
};

}  // namespace postflight
