// Safetensors files whose tensors are parts of larger ones, as torch's writer
// for Hugging Face leaves them: each file has the offsets of its tensors in the
// whole ones.

#include <algorithm>
#include <map>
#include <memory>

#include "checkpoint/dcp/folder.h"
#include "checkpoint/dcp/item.h"
#include "checkpoint/safetensors/safetensors.h"
#include "json/json_value.h"

namespace postflight {
namespace {

constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

// The offset of a part in each dimension; empty if it is missing or invalid.
std::optional<std::vector<std::int64_t>> offsets_of(const Value& info,
                                                    std::string_view name,
                                                    std::size_t dimensions) {
  const Value* const entry = info.find(name);
  const Value* const offsets = entry != nullptr && entry->is(Kind::kDict)
                                   ? entry->find("saved_offsets")
                                   : nullptr;
  if (offsets == nullptr || !offsets->is(Kind::kList) ||
      offsets->items().size() != dimensions)
    return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Value& offset : offsets->items()) {
    if (!offset.is(Kind::kInteger) || offset.integer() < 0)
      return std::nullopt;
    numbers.push_back(offset.integer());
  }
  return numbers;
}

// A file by itself, and its DCP_SHARDING_INFO; empty if it has none.
struct Shard {
  CheckpointContents contents;
  std::string info;
};

Result<Shard> read_shard(const std::filesystem::path& path,
                         const Limits& limits, bool kept_open) {
  Shard shard;
  shard.contents.context.limits = limits;
  shard.contents.add(TRY(DataFile::open(path, limits, kept_open)));
  TRY(add_safetensors(0, {shard.contents}));
  for (const auto& [key, text] : shard.contents.properties)
    if (key == kShardingInfo && shard.info.empty())
      shard.info = text;
  return shard;
}

class ShardedTensors {
 public:
  explicit ShardedTensors(const SourceContext& context) : context_(context) {}

  // The file is kept before any chunk refers to it: a chunk's index is always
  // that of the file it was read from.
  Result<> add(const std::filesystem::path& path) {
    CheckpointContents& checkpoint = context_.checkpoint;
    Shard shard =
        TRY(read_shard(path, context_.limits(),
                       checkpoint.files.size() < DataFile::kMostKeptOpen));
    const std::uint32_t file =
        checkpoint.add(std::move(shard.contents.files.front()));
    for (Finding& finding : shard.contents.findings)
      checkpoint.findings.push_back(std::move(finding));
    if (shard.info.empty())
      return fail(ErrorKind::kCorrupt,
                  "it has no {}, so its tensors have no place in the whole",
                  kShardingInfo);
    Builder builder;
    const Value parts = TRY(parse_json(as_bytes(shard.info), builder));
    if (!parts.is(Kind::kDict))
      return fail(ErrorKind::kCorrupt, "its {} is not a JSON object",
                  kShardingInfo);
    const std::uint64_t size = checkpoint.files[file]->size();
    for (const Node& node : shard.contents.tree.nodes) {
      if (node.kind != NodeKind::kTensor)
        continue;
      const Tensor& tensor = shard.contents.tree.tensors[node.index];
      AssemblyChunk chunk;
      Tree& tree = checkpoint.tree;
      chunk.sizes = tree.keep(tensor.shape);
      chunk.offsets = tree.keep(
          offsets_of(parts, node.key.text, tensor.shape.size())
              .value_or(std::vector<std::int64_t>(tensor.shape.size(), 0)));
      chunk.file = file;
      chunk.extent = {0, size};
      chunk.problem = tree.keep(tensor.problem);
      add_chunk(std::string(node.key.text), tensor.dtype, chunk,
                path.filename().string());
    }
    return {};
  }

  void finish() {
    Tree& tree = context_.checkpoint.tree;
    const std::uint32_t root =
        tree.add(context_.parent, context_.key, NodeKind::kDict);
    for (auto& [name, parts] : tensors_) {
      Assembly assembly;
      assembly.name = tree.keep(name);
      assembly.dtype = parts.dtype;
      assembly.shape = tree.keep(parts.shape);
      const std::size_t count = parts.chunks.size();
      assembly.chunks = {tree.arena.allocate<AssemblyChunk>(count), count};
      std::ranges::copy(parts.chunks, assembly.chunks.begin());
      add_assembly(context_.checkpoint, assembly, root,
                   Key::flat(assembly.name), parts.problem);
    }
    tree.close(root);
  }

 private:
  struct Parts {
    Dtype dtype;
    std::vector<std::int64_t> shape;
    std::vector<AssemblyChunk> chunks;
    std::string problem;  // why they make no tensor
  };

  // A part that does not fit makes the tensor unreadable, and no other.
  void add_chunk(const std::string& name, const Dtype& dtype,
                 const AssemblyChunk& chunk, const std::string& file) {
    const auto [at, is_new] = tensors_.try_emplace(name);
    Parts& parts = at->second;
    if (is_new) {
      parts.dtype = dtype;
      parts.shape.resize(chunk.sizes.size(), 0);
    }
    if (!parts.problem.empty())
      return;
    if (!(parts.dtype == dtype) || parts.shape.size() != chunk.sizes.size()) {
      parts.problem = fmt::format(
          "{} has another dtype or number of dimensions for it than the files "
          "before",
          file);
      return;
    }
    for (std::size_t i = 0; i < chunk.sizes.size(); ++i) {
      const auto end = checked_add(chunk.offsets[i], chunk.sizes[i]);
      if (!end) {
        parts.problem = fmt::format("its offset in {} exceeds 64 bits", file);
        return;
      }
      parts.shape[i] = std::max(parts.shape[i], *end);
    }
    parts.chunks.push_back(chunk);
  }

  const SourceContext& context_;
  std::map<std::string, Parts> tensors_;
};

}  // namespace

bool are_parts(std::span<const std::filesystem::path> files,
               const Limits& limits) {
  if (files.empty())
    return false;
  const Result<Shard> first = read_shard(files.front(), limits, false);
  return first && !first->info.empty();
}

Result<> add_parts(std::span<const std::filesystem::path> files,
                   const SourceContext& context) {
  context.checkpoint.open_item = open_item;
  ShardedTensors tensors(context);
  for (const std::filesystem::path& path : files)
    if (const Result<> added = tensors.add(path); !added)
      context.checkpoint.report("unreadable_shard", Severity::kError,
                                std::string(added.error().message()),
                                path.filename().string());
  tensors.finish();
  return {};
}

}  // namespace postflight
