#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "checkpoint/model/data_file.h"
#include "json/writer.h"

namespace postflight {

// A delta file: what has to be known of one checkpoint to make another of it.
//
//   PFDELTA1 | zstd frames | pickle | description in JSON | where both are,
//                                                           PFDELTA1
//
// The pickle is that of torch.save of the second checkpoint: its tree, values
// and tensors, whose storages it refers to by number. The description says of
// each storage which tensor of the first it is made of and which blocks of it
// differ, and the digests of both. A frame holds the exclusive or of a block
// with that of the base, or the block itself; of each element the first bytes
// come first, then the second, as equal exponents compress well.
struct DeltaBlock {
  std::uint64_t index = 0;  // of the storage's blocks
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // of its frame
  bool replaces = false;   // instead of exclusive or
};

struct DeltaStorage {
  std::vector<std::string> keys;  // of the tensors that are in it
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t element = 1;  // size in bytes
  std::uint64_t bytes = 0;
  std::optional<std::string> base_key;
  std::string base_sha256;
  std::string sha256;
  std::vector<DeltaBlock> blocks;  // by index
};

struct Delta {
  static constexpr std::uint64_t kBlock = 1 << 20;

  std::string base_root;  // of the manifests of both
  std::string root;
  std::string pickle;
  std::vector<DeltaStorage> storages;
  std::vector<std::string> removed;  // keys that only the base has
  std::vector<std::string> added;    // keys that only the result has

  std::uint64_t changed_bytes() const;  // of its frames
};

bool is_delta(Bytes file);

// A delta that was read, and the file that has its frames.
struct DeltaFile {
  std::unique_ptr<DataFile> file;
  Delta delta;

  static Result<DeltaFile> open(const std::filesystem::path& path,
                                const Limits& limits);
  // The bytes of a block: of the result, or what makes them of the base's.
  Result<std::vector<std::byte>> block(const DeltaStorage& storage,
                                       const DeltaBlock& block) const;
  // As it is in the file.
  Result<Bytes> frame(const DeltaBlock& block) const;
};

// How many bytes a block of a storage has.
std::uint64_t block_bytes(const DeltaStorage& storage, std::uint64_t index);
// A block as a frame, and back.
Result<std::vector<std::byte>> encode_block(Bytes block, std::uint64_t element);
Result<std::vector<std::byte>> decode_block(Bytes frame, std::uint64_t bytes,
                                            std::uint64_t element);

// Writes a file front to back: frames, then the rest.
class DeltaWriter {
 public:
  using Sink = std::function<Result<>(Bytes)>;
  explicit DeltaWriter(Sink sink) : sink_(std::move(sink)) {}

  Result<> begin();
  // Sets the offset of the block.
  Result<> add(DeltaBlock& block, Bytes frame);
  Result<> finish(const Delta& delta);
  std::uint64_t size() const { return at_; }

 private:
  Result<> put(Bytes bytes);

  Sink sink_;
  std::uint64_t at_ = 0;
};

}  // namespace postflight
