#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/context.h"
#include "base/error.h"
#include "base/finding.h"
#include "checkpoint/model/assembly.h"
#include "checkpoint/model/format.h"
#include "checkpoint/model/joining.h"
#include "checkpoint/model/node.h"
#include "checkpoint/model/tensor.h"
#include "stream/extension/registry.h"
#include "stream/extension/secret_key.h"

namespace postflight {

struct CheckpointContents;
class DataFile;

struct OpenOptions {
  Context context = {};
  // In a folder of rank files, open only the file of this rank.
  std::optional<std::uint32_t> rank = {};
  Joining joining = {};
  // The transforms that items of distributed checkpoints may have gone through;
  // by default the built-in ones.
  std::optional<ExtensionRegistry> extensions = {};
  std::optional<SecretKey> key = {};
};

// A checkpoint of any format: a tree of nodes, its tensors, and the storages
// that the tensors are views of. Opening runs nothing in it and reads none of
// the tensors' bytes. Everything handed out is valid while the Checkpoint
// lives, also after it was moved.
class Checkpoint {
 public:
  // Recognises the format by content: of a file or of a folder.
  static Result<Checkpoint> open(const std::filesystem::path& path,
                                 OpenOptions options = {});
  // A file in memory, which outlives the Checkpoint; `name` stands for its
  // path.
  static Result<Checkpoint> open(Bytes bytes, const std::filesystem::path& name,
                                 OpenOptions options = {});

  // Takes over what a source has filled.
  explicit Checkpoint(std::unique_ptr<const CheckpointContents> contents);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::filesystem::path& path() const;
  Format format() const;
  // What it was opened with; reading keeps to the same limits.
  const Context& context() const;
  const Limits& limits() const { return context().limits; }

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<const Storage> storages() const { return storages_; }
  std::span<const DataFile* const> files() const { return files_; }
  std::span<const Assembly* const> assemblies() const;
  // Whether it is the trees of several ranks, made one.
  bool joins_ranks() const;
  // Opens the items that assembled tensors consist of. Valid while the
  // Checkpoint stays at its address.
  OpenItem item_opener() const;

  std::span<const Finding> findings() const;
  // The metadata of a safetensors file, or what an archive says of itself:
  // "byteorder".
  std::span<const std::pair<std::string, std::string>> properties() const;
  // Of a truncated file, how much is missing, in words; otherwise empty.
  std::string_view truncation() const;

  // nullptr if the node is not a tensor.
  const Tensor* tensor_at(const Node& node) const {
    return node.kind == NodeKind::kTensor ? &tensors_[node.index] : nullptr;
  }
  const Tensor* tensor_at(std::uint32_t node) const {
    return tensor_at(nodes_[node]);
  }

  // The printed path from the root to a node: `opt[0].m`.
  std::string path_of(std::uint32_t node) const;
  // The same, replacing `text`, for callers that need many.
  void write_path(std::uint32_t node, std::string& text) const;
  // At most the last 128 keys.
  std::vector<Key> keys_to(std::uint32_t node) const;
  // The child with this key; kNoIndex if there is none.
  std::uint32_t child(std::uint32_t node, const Key& key) const;

 private:
  std::unique_ptr<const CheckpointContents> contents_;
  std::span<const Node> nodes_;
  std::span<const Tensor> tensors_;
  std::span<const Storage> storages_;
  std::vector<const DataFile*> files_;
};

}  // namespace postflight
