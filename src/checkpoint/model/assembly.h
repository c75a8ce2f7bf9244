#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "checkpoint/model/dtype.h"
#include "checkpoint/zip/extent.h"

namespace postflight {

class Checkpoint;

constexpr std::uint32_t kNoTensor = ~std::uint32_t{0};

// A box of a tensor that was saved by itself. Views are valid while the
// Checkpoint lives.
struct AssemblyChunk {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> sizes;
  std::uint32_t file = 0;  // of the Checkpoint
  Extent extent = {};      // of its item
  std::span<const std::string_view> transforms = {};
  // Instead of an item of a file: the part of another tensor of the Checkpoint
  // that begins at `from`, and other tensors whose parts must be the same.
  std::uint32_t tensor = kNoTensor;
  std::span<const std::int64_t> from = {};
  std::span<const std::int64_t> replicas = {};
  std::string_view problem = {};  // why it is unavailable
  std::uint64_t begin = 0;        // where its first and last bytes go
  std::uint64_t end = 0;
  std::uint64_t reach = 0;  // the largest end up to here, by begin
};

// A tensor that consists of chunks, which are joined when it is read. Readers
// see a storage with the bytes of the whole tensor, row-major.
struct Assembly {
  std::string_view name;
  Dtype dtype;
  std::span<const std::int64_t> shape;
  std::span<AssemblyChunk> chunks;  // by begin

  // Sorts the chunks and drops duplicates, as replicated tensors have. Returns
  // what is wrong with them (out of bounds, overlapping, not covering the
  // whole), or nothing.
  std::string settle();
  // How many chunks are unavailable, and which and why, in words.
  std::size_t lost() const;
  std::string loss() const;
  // Of a chunk that was found to be in bounds.
  std::uint64_t bytes_of(const AssemblyChunk& chunk) const;
  // "model.weight at (0, 128)"
  std::string place_of(const AssemblyChunk& chunk) const;
  // The range of chunks that may have bytes of the whole in [offset, end).
  std::pair<std::size_t, std::size_t> chunks_in(std::uint64_t offset,
                                                std::uint64_t end) const;
};

// An open chunk: the bytes of a tensor in row-major order, at any offset.
class AssemblyItem {
 public:
  virtual ~AssemblyItem() = default;
  virtual Result<> read_at(std::uint64_t offset, std::span<std::byte> to) = 0;
  // The same bytes in memory or mapped, if they are.
  virtual std::optional<Bytes> view(std::uint64_t offset,
                                    std::uint64_t size) const = 0;
  // Roughly how much memory it holds.
  virtual std::uint64_t memory() const = 0;
  // Whether its bytes are those that were written, as far as a checksum says.
  virtual Result<> check() const { return {}; }
  // The item as a checkpoint of its own, if it is one.
  virtual const Checkpoint* checkpoint() const { return nullptr; }
};
using OpenItem = std::function<Result<std::unique_ptr<AssemblyItem>>(
    const Assembly& assembly, const AssemblyChunk& chunk)>;

// Reads bytes of the whole. Of each chunk only the needed bytes are read, and
// gaps of up to a page.
class AssemblyReader {
 public:
  // With `check`, each item is checked before the first byte of it is used.
  AssemblyReader(const Assembly& assembly, OpenItem open_item,
                 bool check = false);

  Result<> read_at(std::uint64_t offset, std::span<std::byte> to);
  // The same, but only the part that one chunk has.
  Result<> read_chunk(std::size_t chunk, std::uint64_t offset,
                      std::span<std::byte> to);

 private:
  Result<AssemblyItem*> item(std::size_t chunk);
  // Bytes of an item, viewed or copied to staging_.
  Result<Bytes> stretch(AssemblyItem& item, std::uint64_t offset,
                        std::uint64_t size);

  const Assembly& assembly_;
  OpenItem open_item_;
  std::unordered_map<std::size_t, std::unique_ptr<AssemblyItem>> items_;
  std::uint64_t memory_ = 0;
  bool check_;
  std::unordered_set<std::size_t> checked_;  // chunks
  std::vector<std::byte> staging_;
};

}  // namespace postflight
