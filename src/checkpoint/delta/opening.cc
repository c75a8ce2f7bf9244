#include "checkpoint/delta/opening.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <vector>

#include "checkpoint/delta/file.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/model/contents.h"
#include "checkpoint/model/quotes.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/element_reader.h"
#include "checkpoint/torch/tree_builder.h"

namespace postflight {
namespace {

constexpr std::string_view kReplaces = "replaces";

// A stretch of a storage that is as in the base, or one block that is not.
class DeltaItem : public AssemblyItem {
 public:
  DeltaItem(const Checkpoint* base, const Tensor* tensor, std::uint64_t from)
      : from_(from) {
    if (tensor != nullptr)
      reader_.emplace(*base, *tensor);
  }

  Result<> decode(Bytes frame, std::uint64_t bytes, std::uint64_t element,
                  bool replaces) {
    bytes_ = TRY(decode_block(frame, bytes, element));
    if (replaces || !reader_)
      return {};
    std::vector<std::byte> base(bytes);
    TRY(reader_->read(from_, base));
    for (std::size_t i = 0; i < base.size(); ++i)
      bytes_[i] ^= base[i];
    return {};
  }

  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) override {
    if (bytes_.empty())
      return reader_->read(from_ + offset, to);
    copy_bytes(TRY(slice(bytes_, offset, to.size())), to);
    return {};
  }

  std::optional<Bytes> view(std::uint64_t offset,
                            std::uint64_t size) const override {
    if (bytes_.empty())
      return std::nullopt;
    const Result<Bytes> part = slice(bytes_, offset, size);
    return part ? std::optional(*part) : std::nullopt;
  }

  std::uint64_t memory() const override { return bytes_.size(); }

 private:
  std::optional<ElementReader> reader_;
  std::uint64_t from_;
  std::vector<std::byte> bytes_;
};

struct DeltaBase : OtherCheckpoint {
  explicit DeltaBase(Checkpoint opened) : checkpoint(std::move(opened)) {}
  Checkpoint checkpoint;
};

const Checkpoint& base_of(const CheckpointContents& contents) {
  return static_cast<const DeltaBase&>(*contents.other).checkpoint;
}

Result<std::unique_ptr<AssemblyItem>> open_block(
    const Checkpoint& /*checkpoint*/, const CheckpointContents& contents,
    const Assembly& /*assembly*/, const AssemblyChunk& chunk) {
  const Checkpoint& base = base_of(contents);
  const Tensor* const tensor =
      chunk.tensor == kNoTensor ? nullptr : &base.tensors()[chunk.tensor];
  const auto from = static_cast<std::uint64_t>(chunk.offsets[0]);
  auto item = std::make_unique<DeltaItem>(&base, tensor, from);
  if (chunk.extent.size == 0)
    return item;
  const Bytes frame = TRY(slice(contents.files[chunk.file]->bytes(),
                                chunk.extent.offset, chunk.extent.size));
  TRY(item->decode(frame, static_cast<std::uint64_t>(chunk.sizes[0]),
                   static_cast<std::uint64_t>(chunk.from[0]),
                   !chunk.transforms.empty()));
  return item;
}

class DeltaTree {
 public:
  DeltaTree(Checkpoint base, DeltaFile file)
      : contents_(std::make_unique<CheckpointContents>()),
        delta_(std::move(file.delta)) {
    contents_->path = file.file->path();
    contents_->format = base.format();
    contents_->context = base.context();
    contents_->open_item = open_block;
    contents_->other_files.assign(base.files().begin(), base.files().end());
    contents_->other = std::make_unique<DeltaBase>(std::move(base));
    contents_->add(std::move(file.file));
  }

  Result<AppliedDelta> open(
      const std::function<void(std::uint64_t bytes)>& progress) {
    TRY(find_bases());
    TRY(check_bases(progress));
    for (std::size_t i = 0; i < delta_.storages.size(); ++i)
      TRY(add_storage(i));
    TRY(add_tree());
    AppliedDelta applied{Checkpoint(std::move(contents_)), {}};
    const Checkpoint& made = applied.checkpoint;
    for (std::uint32_t node = 0; node < made.nodes().size(); ++node) {
      const Tensor* const tensor = made.tensor_at(node);
      if (tensor == nullptr || tensor->storage >= delta_.storages.size())
        continue;
      const DeltaStorage& storage = delta_.storages[tensor->storage];
      if (tensor->bytes() == storage.bytes && tensor->offset == 0)
        applied.expected[node] = storage.sha256;
    }
    return applied;
  }

 private:
  Result<> find_bases() {
    const Checkpoint& base = base_of(*contents_);
    std::map<std::string, std::uint32_t> nodes;
    for (std::uint32_t node = 0; node < base.nodes().size(); ++node)
      if (const Tensor* const tensor = base.tensor_at(node);
          tensor != nullptr && tensor->readable())
        nodes.emplace(plain_path(base, node), node);
    for (const DeltaStorage& storage : delta_.storages) {
      std::uint32_t found = kNoIndex;
      if (storage.base_key) {
        const auto node = nodes.find(*storage.base_key);
        if (node == nodes.end())
          return wrong_base(fmt::format("it has no {}", *storage.base_key));
        found = node->second;
        const Tensor& tensor = *base.tensor_at(found);
        if (tensor.dtype.name != storage.dtype ||
            !std::ranges::equal(tensor.shape, storage.shape) ||
            tensor.bytes() != storage.bytes ||
            tensor.dtype.size != storage.element)
          return wrong_base(fmt::format("its {} has another dtype or shape",
                                        *storage.base_key));
      }
      bases_.push_back(found);
    }
    return {};
  }

  tl::unexpected<Error> wrong_base(std::string_view why) const {
    return fail(ErrorKind::kRefused,
                "{} is not the checkpoint that the delta was made of: {}; "
                "nothing was written",
                base_of(*contents_).path().string(), why);
  }

  Result<> check_bases(
      const std::function<void(std::uint64_t bytes)>& progress) {
    const Checkpoint& base = base_of(*contents_);
    std::map<std::uint32_t, const DeltaStorage*> wanted;
    for (std::size_t i = 0; i < bases_.size(); ++i)
      if (bases_[i] != kNoIndex)
        wanted.emplace(bases_[i], &delta_.storages[i]);
    std::vector<std::uint32_t> nodes;
    for (const auto& [node, storage] : wanted)
      nodes.push_back(node);
    std::string problem;
    TRY(digest_tensors(
        base, nodes,
        [&](std::uint32_t node, const Result<std::string>& digest) {
          if (progress)
            progress(base.tensor_at(node)->bytes());
          const DeltaStorage& storage = *wanted.at(node);
          if (!problem.empty())
            return;
          if (!digest)
            problem = fmt::format("{}: {}", *storage.base_key,
                                  digest.error().message());
          else if (*digest != storage.base_sha256)
            problem =
                fmt::format("its {} has other elements", *storage.base_key);
        }));
    if (!problem.empty())
      return wrong_base(problem);
    return {};
  }

  Result<> add_storage(std::size_t number) {
    Tree& tree = contents_->tree;
    const DeltaStorage& from = delta_.storages[number];
    const std::uint32_t tensor =
        bases_[number] == kNoIndex
            ? kNoTensor
            : base_of(*contents_).nodes()[bases_[number]].index;
    Assembly* const assembly = tree.arena.make(Assembly());
    const std::int64_t shape[] = {static_cast<std::int64_t>(from.bytes)};
    assembly->name = tree.keep(from.keys.empty() ? "" : from.keys.front());
    assembly->dtype = dtype_named("uint8");
    assembly->shape = tree.keep(shape);
    std::vector<AssemblyChunk> chunks;
    const auto add = [&](std::uint64_t begin, std::uint64_t end,
                         const DeltaBlock* block) {
      if (begin == end)
        return;
      const std::int64_t offset[] = {static_cast<std::int64_t>(begin)};
      const std::int64_t size[] = {static_cast<std::int64_t>(end - begin)};
      const std::int64_t element[] = {static_cast<std::int64_t>(from.element)};
      AssemblyChunk chunk;
      chunk.offsets = tree.keep(offset);
      chunk.sizes = tree.keep(size);
      chunk.tensor = tensor;
      chunk.from = tree.keep(element);
      if (block != nullptr)
        chunk.extent = {block->offset, block->size};
      if (block != nullptr && block->replaces)
        chunk.transforms = {&kReplaces, 1};
      chunks.push_back(chunk);
    };
    std::uint64_t at = 0;
    for (const DeltaBlock& block : from.blocks) {
      const std::uint64_t begin = block.index * Delta::kBlock;
      const std::uint64_t end = begin + block_bytes(from, block.index);
      add(at, begin, nullptr);
      add(begin, end, &block);
      at = end;
    }
    add(at, from.bytes, nullptr);
    auto* const kept = tree.arena.allocate<AssemblyChunk>(chunks.size());
    std::uninitialized_copy(chunks.begin(), chunks.end(), kept);
    assembly->chunks = {kept, chunks.size()};
    Storage& storage = tree.storages.emplace_back();
    storage.key = assembly->name;
    storage.size = from.bytes;
    storage.assembly = assembly;
    storage.problem = tree.keep(assembly->settle());
    contents_->assemblies.push_back(assembly);
    return {};
  }

  Result<> add_tree() {
    DataFile& file = *contents_->files.front();
    kept_pickle_ = contents_->tree.keep(delta_.pickle);
    const Pickle pickle =
        TRY(load_pickle(*contents_, file, as_bytes(kept_pickle_))
                .in("the delta's pickle"));
    TreeBuilder builder(
        contents_->tree, [this](const Value& id, StorageReference& reference) {
          if (!read_storage_id(id, reference))
            return kNoIndex;
          std::uint32_t number = 0;
          const char* const end = reference.key.data() + reference.key.size();
          const auto read = std::from_chars(reference.key.data(), end, number);
          return read.ec == std::errc() && read.ptr == end &&
                         number < delta_.storages.size()
                     ? number
                     : kNoIndex;
        });
    builder.build(pickle.root, 0, {});
    if (contents_->tree.nodes.empty())
      return fail(ErrorKind::kCorrupt, "the delta's pickle has no tree");
    set_quotes(contents_->tree);
    return {};
  }

  std::unique_ptr<CheckpointContents> contents_;
  Delta delta_;
  std::vector<std::uint32_t> bases_;  // nodes of the base, by storage
  std::string_view kept_pickle_;
};

}  // namespace

Result<AppliedDelta> apply_delta(
    Checkpoint base, const std::filesystem::path& delta,
    const std::function<void(std::uint64_t bytes)>& progress) {
  DeltaFile file = TRY(DeltaFile::open(delta, base.limits()));
  return DeltaTree(std::move(base), std::move(file)).open(progress);
}

}  // namespace postflight
