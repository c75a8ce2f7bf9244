// Folders of torch.distributed.checkpoint. The metadata says what tensors there
// are and which files have their chunks; a tensor is an Assembly of these.
// Other entries are the values that their items hold.

#include "checkpoint/dcp/folder.h"

#include <algorithm>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/hash.h"
#include "base/hash_index.h"
#include "checkpoint/dcp/item.h"
#include "checkpoint/dcp/metadata.h"
#include "checkpoint/dcp/tree.h"
#include "checkpoint/torch/sources.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

// The size of the empty archive that ranks without data write.
constexpr std::uint64_t kEmptyFile = 88;
constexpr std::string_view kCommon = "common.pt";

// The files that hold items, opened when first needed.
class ItemFiles {
 public:
  struct Found {
    std::uint32_t file = kNoIndex;
    std::string_view problem = {};
  };

  ItemFiles(const fs::path& folder, const SourceContext& context)
      : folder_(folder), context_(context) {}

  // Where an item is, or why it is unavailable.
  Found place(const DcpPlace* place, Extent& extent) {
    if (place == nullptr)
      return {.problem = "the metadata does not say where it is"};
    Found found = find(place->file);
    if (!found.problem.empty())
      return found;
    extent = {place->offset, place->length};
    const std::uint64_t size = context_.checkpoint.files[found.file]->size();
    if (extent.offset > size || extent.size > size - extent.offset)
      found.problem = context_.checkpoint.tree.keep(
          fmt::format("its {} bytes at byte {} of {} are beyond that file's "
                      "end at {}; it is probably truncated",
                      extent.size, extent.offset, place->file, size));
    return found;
  }

  void report_leftovers() const {
    std::error_code error;
    fs::directory_iterator it(folder_, error);
    std::vector<std::string> left;
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.ends_with(".distcp") && !knows(name) &&
          it->file_size(error) > kEmptyFile)
        left.push_back(name);
    }
    std::ranges::sort(left);
    for (const std::string& name : left)
      context_.checkpoint.findings.push_back(
          {"leftover_file", Severity::kNote,
           fmt::format("nothing refers to {}; it may be left over from another "
                       "save",
                       name),
           name});
  }

 private:
  struct Known {
    std::string_view name;
    Found found;
  };

  std::uint32_t index_of(std::string_view name, std::uint64_t hash) const {
    return by_name_.find(
        hash, [&](std::uint32_t index) { return known_[index].name == name; });
  }

  bool knows(std::string_view name) const {
    return index_of(name, hash_text(name)) != HashIndex::kNone;
  }

  Found find(std::string_view name) {
    const std::uint64_t hash = hash_text(name);
    std::uint32_t index = index_of(name, hash);
    if (index == HashIndex::kNone) {
      index = static_cast<std::uint32_t>(known_.size());
      known_.push_back({name, open(std::string(name))});
      by_name_.add(hash, index);
    }
    return known_[index].found;
  }

  Found open(const std::string& name) {
    CheckpointContents& checkpoint = context_.checkpoint;
    const auto lost = [&](std::string kind, std::string problem) -> Found {
      const std::string_view kept = checkpoint.tree.keep(problem);
      checkpoint.findings.push_back(
          {std::move(kind), Severity::kError, std::move(problem), name});
      return {.problem = kept};
    };
    if (!stays_inside(name))
      return lost("outside_folder",
                  fmt::format("the metadata names {}, which is outside its "
                              "folder",
                              name));
    std::error_code error;
    if (!fs::exists(folder_ / name, error))
      return lost("missing_file",
                  fmt::format("the metadata names {}, which is not in the "
                              "folder",
                              name));
    Result<std::unique_ptr<DataFile>> file = DataFile::open(
        folder_ / name, context_.limits(), opened_++ < DataFile::kMostKeptOpen);
    if (!file)
      return lost("unreadable_file", std::string(file.error().message()));
    return {.file = checkpoint.add(*std::move(file))};
  }

  const fs::path& folder_;
  const SourceContext& context_;
  std::vector<Known> known_;
  HashIndex by_name_;
  std::size_t opened_ = 0;
};

class Distributed {
 public:
  Distributed(const fs::path& folder, const SourceContext& context)
      : folder_(folder),
        context_(context),
        checkpoint_(context.checkpoint),
        files_(folder, context) {
    checkpoint_.open_item = open_item;
  }

  Result<> add(std::span<const fs::path> metadata_files) {
    std::vector<DcpMetadata> parts;
    for (const fs::path& path : metadata_files)
      parts.push_back(TRY(read_metadata(path).in(path.string())));
    const DcpMetadata metadata =
        join_dcp_metadata(std::move(parts), checkpoint_.tree.arena);
    const auto root = static_cast<std::uint32_t>(checkpoint_.tree.nodes.size());
    // Growing the vectors would take as long as all the rest.
    const std::size_t entries = metadata.entries.size();
    checkpoint_.tree.tensors.reserve(entries);
    checkpoint_.tree.storages.reserve(entries);
    checkpoint_.assemblies.reserve(entries);
    DcpTree(metadata.entries)
        .write(checkpoint_.tree, context_.parent, context_.key,
               [&](const DcpEntry& entry, std::uint32_t parent,
                   const Key& key) { add_entry(entry, parent, key); });
    if (!metadata.unclaimed.empty())
      checkpoint_.findings.push_back(
          {"unclaimed_item", Severity::kNote,
           fmt::format("{} stored items belong to no entry, the first to '{}'",
                       metadata.unclaimed.size(), metadata.unclaimed.front()),
           metadata_files.front().filename().string()});
    files_.report_leftovers();
    add_common(root);
    return {};
  }

 private:
  // Megatron's torch_dist folders have what all ranks share in a file of its
  // own. Its items are added beside the tensors, as Megatron loads both, or
  // below the name of the file if a key is in both.
  void add_common(std::uint32_t root) {
    const fs::path path = folder_ / kCommon;
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      return;
    const std::size_t properties = checkpoint_.properties.size();
    // Read by itself first, to see its keys.
    CheckpointContents alone{.context = checkpoint_.context};
    Result<Format> added = context_.add_file(path, {alone, context_.add_file});
    if (added)
      added = context_.add_file(path,
                                fits_beside(alone.tree, root)
                                    ? context_.items_at(root)
                                    : context_.at(root, Key::string(kCommon)));
    checkpoint_.tree.close(root);
    checkpoint_.properties.resize(properties);
    if (!added)
      checkpoint_.findings.push_back({"unreadable_file", Severity::kError,
                                      std::string(added.error().message()),
                                      std::string(kCommon)});
  }

  bool fits_beside(const Tree& common, std::uint32_t root) const {
    if (common.nodes[0].kind != NodeKind::kDict)
      return false;
    std::unordered_set<std::string> taken;
    const std::span<const Node> nodes = checkpoint_.tree.nodes;
    for (std::uint32_t at = root + 1; at < nodes.size(); at = nodes[at].end)
      taken.insert(key_text(nodes[at].key));
    for (std::uint32_t at = 1; at < common.nodes.size();
         at = common.nodes[at].end)
      if (taken.contains(key_text(common.nodes[at].key)))
        return false;
    return true;
  }

  static std::string key_text(const Key& key) {
    std::string text;
    append_key(key, text);
    return text;
  }

  Result<DcpMetadata> read_metadata(const fs::path& path) {
    checkpoint_.add(TRY(DataFile::open(path, context_.limits())));
    DataFile& data = *checkpoint_.files.back();
    const Pickle pickle = TRY(load_pickle(checkpoint_, data, data.bytes()));
    // What is kept of tensors and chunks takes about twice the pickle.
    checkpoint_.tree.arena.expect(2 * pickle.size);
    return read_dcp_metadata(pickle.root, checkpoint_.tree.arena);
  }

  void add_entry(const DcpEntry& entry, std::uint32_t parent, const Key& key) {
    if (entry.is_tensor)
      add_tensor(entry, parent, key);
    else
      add_bytes(entry, parent, key);
  }

  void add_tensor(const DcpEntry& entry, std::uint32_t parent, const Key& key) {
    Assembly assembly;
    assembly.name = entry.name;
    assembly.dtype = entry.dtype;
    assembly.shape = entry.size;
    const std::size_t count = entry.chunks.size();
    auto* const chunks = checkpoint_.tree.arena.allocate<AssemblyChunk>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const DcpChunk& from = entry.chunks[i];
      AssemblyChunk chunk;
      chunk.offsets = from.offsets;
      chunk.sizes = from.sizes;
      const ItemFiles::Found found = files_.place(from.place, chunk.extent);
      chunk.file = found.file;
      chunk.problem = found.problem;
      if (from.place != nullptr)
        chunk.transforms = from.place->transforms;
      chunks[i] = chunk;
    }
    assembly.chunks = {chunks, count};
    add_assembly(checkpoint_, assembly, parent, key);
  }

  void add_bytes(const DcpEntry& entry, std::uint32_t parent, const Key& key) {
    const std::size_t nodes = checkpoint_.tree.nodes.size();
    const std::size_t properties = checkpoint_.properties.size();
    const Result<> added = add_item(entry, parent, key);
    // An item's archive has a version and a byte order like any other.
    checkpoint_.properties.resize(properties);
    if (added)
      return;
    checkpoint_.findings.push_back({"unreadable_item", Severity::kError,
                                    std::string(added.error().message()),
                                    std::string(entry.name)});
    if (checkpoint_.tree.nodes.size() == nodes)
      checkpoint_.tree.add(parent, key, NodeKind::kValue);
  }

  Result<> add_item(const DcpEntry& entry, std::uint32_t parent,
                    const Key& key) {
    Extent extent;
    const ItemFiles::Found found = files_.place(entry.place, extent);
    if (!found.problem.empty())
      return fail(ErrorKind::kCorrupt, "{}", found.problem);
    const std::uint32_t file = checkpoint_.add(
        TRY(open_item_file(checkpoint_, *checkpoint_.files[found.file], extent,
                           entry.place->transforms)));
    TRY(add_torch_zip(file, context_.at(parent, key)));
    return {};
  }

  const fs::path& folder_;
  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  ItemFiles files_;
};

}  // namespace

Result<> add_distributed(const fs::path& folder,
                         std::span<const fs::path> metadata,
                         const SourceContext& context) {
  return Distributed(folder, context).add(metadata);
}

}  // namespace postflight
