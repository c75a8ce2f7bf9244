#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/error.h"
#include "base/finding.h"
#include "checkpoint/model/assembly.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/model/format.h"
#include "checkpoint/model/joining.h"
#include "checkpoint/model/tree.h"
#include "stream/extension/registry.h"
#include "stream/extension/secret_key.h"

namespace postflight {

class Checkpoint;

// Held by a checkpoint whose tensors are made of those of another.
struct OtherCheckpoint {
  virtual ~OtherCheckpoint() = default;
};

// What a Checkpoint consists of. Sources fill it; once it is a Checkpoint's,
// nothing changes it, and it stays at its address.
struct CheckpointContents {
  std::filesystem::path path = {};
  Format format = Format::kTorchZip;
  Context context = {};
  std::optional<ExtensionRegistry> extensions = {};
  std::optional<SecretKey> key = {};
  Joining joining = {};
  Tree tree = {};
  std::vector<std::unique_ptr<DataFile>> files = {};
  std::vector<const Assembly*> assemblies = {};  // in the tree's arena
  // Opens an item of an assembly of the checkpoint, whose contents these are.
  // Set by the source that adds assemblies, as only that knows what its items
  // are.
  Result<std::unique_ptr<AssemblyItem>> (*open_item)(
      const Checkpoint& checkpoint, const CheckpointContents& contents,
      const Assembly& assembly, const AssemblyChunk& chunk) = nullptr;
  bool joins_ranks = false;
  // Another checkpoint that chunks are made of, as open_item knows it, and its
  // files.
  std::unique_ptr<OtherCheckpoint> other = {};
  std::vector<const DataFile*> other_files = {};
  std::vector<Finding> findings = {};
  std::vector<std::pair<std::string, std::string>> properties = {};
  std::string truncation = {};
  std::uint64_t disk_bytes = 0;  // of its files
  std::uint64_t held_bytes = 0;  // of the values of its pickles

  // How much memory may still be taken: a few bytes can describe very much.
  std::uint64_t memory_left() const;

  // Returns the index of the file.
  std::uint32_t add(std::unique_ptr<DataFile> file) {
    if (!file->is_part())
      disk_bytes += file->size();
    files.push_back(std::move(file));
    return static_cast<std::uint32_t>(files.size() - 1);
  }
  void report(std::string kind, Severity severity, std::string message,
              std::string where) {
    findings.push_back(
        {std::move(kind), severity, std::move(message), std::move(where)});
  }
};

// Reads the pickle at the start of `bytes`, which are of `file` or kept by it.
// It keeps the values.
Result<Pickle> load_pickle(CheckpointContents& checkpoint, DataFile& file,
                           Bytes bytes);

// Where a source puts the tree of a file or folder: below `parent`, under
// `key`.
struct SourceContext {
  // Opens a file of any format. It is passed along so that a source whose
  // folder has such files need not know the table of sources.
  using AddFile = Result<Format> (*)(const std::filesystem::path& path,
                                     const SourceContext& context);

  CheckpointContents& checkpoint;
  AddFile add_file = nullptr;
  std::uint32_t parent = 0;
  Key key = {};
  bool items_only = false;  // the items of the root dict go below `parent`
  bool nested = false;      // the file is inside another

  const Limits& limits() const { return checkpoint.context.limits; }
  SourceContext at(std::uint32_t new_parent, const Key& new_key) const {
    return {checkpoint, add_file, new_parent, new_key};
  }
  // For the items of a file's root dict.
  SourceContext items_at(std::uint32_t new_parent) const {
    return {checkpoint, add_file, new_parent, {}, /*items_only=*/true};
  }
};

// Adds a tensor that consists of chunks, after checking them. `problem` is one
// that was found before.
void add_assembly(CheckpointContents& checkpoint, const Assembly& assembly,
                  std::uint32_t parent, const Key& key,
                  std::string problem = {});

// Gives every tensor the problem of its storage, where that was found later.
void spread_problems(Tree& tree);

// Whether a file name found in a checkpoint stays inside its folder.
bool stays_inside(const std::filesystem::path& name);

// The names of rank files, as torch's experimental checkpointer writes them:
// checkpoint_3.pt. The second is empty for any other name.
std::string rank_file_name(std::uint32_t rank);
std::optional<std::uint32_t> rank_of_file(std::string_view name);

}  // namespace postflight
