#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace postflight {

// Where written bytes go.
using ByteSink = std::function<Result<>(Bytes)>;

// A zip archive as torch.save of torch 2.7 and newer writes it, byte for byte:
// sizes and CRCs behind each record, payloads aligned by a field of padding,
// zip64 records at the end in any case, and the serialization id.
class TorchArchive {
 public:
  // `root`: the folder of all records, "archive" for one in memory. Payloads
  // are aligned to multiples of `alignment` from the front of the archive.
  TorchArchive(std::string root, std::uint64_t alignment, ByteSink sink);

  Result<> add(std::string_view name, std::string_view contents);
  // A record of `size` bytes that `write` passes on in pieces.
  using Write = std::function<Result<>(const ByteSink& sink)>;
  Result<> add(std::string_view name, std::uint64_t size, const Write& write);

  // What torch writes before the storages: the pickle and how to read it.
  Result<> begin(std::string_view pickle, std::string_view byte_order);
  // The version, the serialization id, the directory.
  Result<> finish();

  std::uint64_t size() const { return at_; }

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint32_t crc;
  };

  Result<> put(std::string_view bytes);
  std::string serialization_id() const;

  std::string root_;
  std::uint64_t alignment_;
  ByteSink sink_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

// The folder that torch names after the file: "model" for model.pt, "archive"
// for a name that is not ASCII.
std::string torch_archive_root(std::string_view file_name);

}  // namespace postflight
