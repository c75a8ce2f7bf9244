#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/finding.h"
#include "base/limits.h"
#include "checkpoint/model/assembly.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/model/node.h"
#include "checkpoint/model/tensor.h"
#include "checkpoint/torch/tree_builder.h"

namespace postflight {

class ExtensionRegistry;
class SecretKey;

enum class Format : std::uint8_t {
  kTorchZip,  // torch.save since 1.6
  kTorchScript,
  kTorchPackage,
  kExported,  // .pt2
  kLegacy,    // torch.save from 0.1.10 to 1.5
  kTar,       // torch.save before 0.1.10
  kSafetensors,
  kShards,       // a folder of files and the index that says what is where
  kRanks,        // a folder of checkpoint_0.pt, checkpoint_1.pt, ...
  kDistributed,  // torch.distributed.checkpoint
  kPickle,
};

// "torch.save", "TorchScript": for people; and a stable name for programs.
std::string_view format_title(Format format);
std::string_view format_name(Format format);

struct OpenOptions {
  Limits limits = {};
  std::optional<std::uint32_t> rank = {};  // of a folder of ranks, one file
  // What the items of distributed checkpoints may have gone through; those that
  // are built in if not given. Both have to outlive the Checkpoint.
  const ExtensionRegistry* extensions = nullptr;
  const SecretKey* key = nullptr;
};

// A checkpoint of any kind, opened: what it holds as a tree of nodes, and where
// the bytes of its tensors lie. Nothing of it was run, and none of the tensors'
// bytes were read yet. Everything handed out is valid while it lives.
//
// A new kind of source is one more file that fills these members, and a line in
// open().
class Checkpoint {
 public:
  // By content, not by name: a file or a folder.
  static Result<Checkpoint> open(const std::filesystem::path& path,
                                 const OpenOptions& options = {});

  std::filesystem::path path;
  Format format = Format::kTorchZip;
  Tree tree;
  std::vector<std::unique_ptr<DataFile>> files;
  std::vector<const Assembly*> assemblies;  // in the tree's arena
  const ExtensionRegistry* extensions = nullptr;
  const SecretKey* secret_key = nullptr;
  std::vector<Finding> findings;
  // safetensors' own, and what archives say of themselves: "byteorder".
  std::vector<std::pair<std::string, std::string>> properties;
  // Of a file that breaks off: how much is missing, in words.
  std::string truncation;

  std::span<const Node> nodes() const { return tree.nodes; }
  std::span<const Tensor> tensors() const { return tree.tensors; }
  std::span<const Storage> storages() const { return tree.storages; }
  const Tensor* tensor_at(const Node& node) const {
    return node.kind == NodeKind::kTensor ? &tree.tensors[node.index] : nullptr;
  }

  // From the root to a node: `opt[0].m`.
  std::string path_of(std::uint32_t node) const;
  // The same in place of what `text` holds, for those who want many.
  void write_path(std::uint32_t node, std::string& text) const;
  std::string path_json(std::uint32_t node) const;
  std::vector<Key> keys_to(std::uint32_t node) const;  // the last 128
  // The child with this key; kNoIndex if there is none.
  std::uint32_t child(std::uint32_t node, const Key& key) const;
};

// What the sources share. Each adds a file's tree below `parent`.
struct SourceContext {
  Checkpoint& checkpoint;
  const Limits& limits;
  std::uint32_t parent = 0;
  Key key = {};
  // The items of the file's dict go below `parent` themselves.
  bool items_only = false;
  bool nested = false;  // the file lies inside another
};

// Puts what `root` holds where the context says.
Result<> place(TreeBuilder& builder, const Value& root,
               const SourceContext& context);
// Gives every tensor the problem of its storage, where that was found later.
void spread_problems(Tree& tree);

// Opens a file of any kind and adds its tree; says what it was.
Result<Format> add_file(const std::filesystem::path& path,
                        const SourceContext& context);

// One for each kind of file, which the caller has recognised.
Result<Format> add_torch_zip(std::uint32_t file, const SourceContext& context);
Result<> add_legacy_stream(std::uint32_t file, const SourceContext& context);
Result<> add_tar(std::uint32_t file, const SourceContext& context);
Result<> add_safetensors(std::uint32_t file, const SourceContext& context);
Result<> add_bare_pickle(std::uint32_t file, const SourceContext& context);
// Whether a name that a file gives for another stays inside their folder.
bool stays_inside(const std::filesystem::path& name);
// The rank whose file torch's experimental checkpointer calls so.
std::optional<std::uint32_t> rank_of_file(std::string_view name);
// Folders.
Result<Format> add_folder(const std::filesystem::path& folder,
                          const OpenOptions& options,
                          const SourceContext& context);

// A folder with these metadata files: .metadata, or one of each rank.
Result<> add_distributed(const std::filesystem::path& folder,
                         std::span<const std::filesystem::path> metadata,
                         const SourceContext& context);
// Safetensors files that are shards of whole tensors, as torch's writer for
// Hugging Face leaves them; false if they are not.
Result<bool> add_sharded_safetensors(
    std::span<const std::filesystem::path> files, const SourceContext& context);

// Adds a tensor that lies in parts, which are checked.
void add_assembly(Checkpoint& checkpoint, const Assembly& assembly,
                  std::uint32_t parent, const Key& key);
// Opens the items of assembled tensors. The Checkpoint must outlive it.
OpenItem item_opener(const Checkpoint& checkpoint);

}  // namespace postflight
