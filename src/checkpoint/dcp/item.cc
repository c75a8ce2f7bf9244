// An item of a distributed checkpoint is a checkpoint inside a checkpoint.
//
// A rank saves each of its parts of the state dict as an item: a stretch of a
// .distcp file that is itself what torch.save would have written, a zip archive
// whose root is one tensor. Transforms (compression, encryption) may have been
// applied to the stretch as a whole. Writers for Hugging Face use a tensor of a
// safetensors file instead. So an item has its own directory, pickle, storage,
// byte order and strides, and all of them may contradict the metadata that led
// to it.
//
// Hence there is no reader of items. ItemTensor makes the stretch a DataFile,
// decoding it into memory if it went through transforms, has the source of its
// format fill a Checkpoint, and checks that its one tensor has the dtype and
// the sizes of the chunk. What every file gets, an item gets too: limits,
// checks of bounds, salvage, verification.
//
// The tensors of the outer checkpoint are Assemblies: storages whose bytes are
// those of their chunks, found through AssemblyItem, the interface of
// ItemTensor. A tensor whose item is contiguous is read straight from the file,
// wherever the rows of the chunk belong; only items with other strides are
// first copied into row-major order. Nothing is opened before a byte of it is
// needed.
//
// Rejected: treating an item as its raw bytes at a known offset. It is faster
// to open, but it trusts the metadata for dtype and layout, and cannot read
// items with transforms.

#include "checkpoint/dcp/item.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/torch/sources.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_chain.h"
#include "stream/memory_stream.h"

namespace postflight {
namespace {

const ExtensionRegistry& registry_of(const CheckpointContents& checkpoint) {
  static const ExtensionRegistry built_in = built_in_registry();
  return checkpoint.extensions ? *checkpoint.extensions : built_in;
}

// A decoder gets room for at most so many times its input on the word of a
// file: more than weights ever compress to.
constexpr std::uint64_t kMostExpansion = 64;

class ItemTensor : public AssemblyItem {
 public:
  ItemTensor(std::unique_ptr<DataFile> file, const Context& context,
             bool in_memory)
      : file_(std::move(file)), context_(context), in_memory_(in_memory) {}

  Result<> open(const Assembly& assembly, const AssemblyChunk& chunk) {
    auto contents = std::make_unique<CheckpointContents>();
    contents->context = context_;
    const bool archive = is_torch_zip(file_->bytes());
    contents->add(std::move(file_));
    if (archive)
      TRY(add_torch_zip(0, {*contents}));
    else
      TRY(add_safetensors(0, {*contents}));
    item_.emplace(std::move(contents));
    const std::uint32_t node =
        archive ? 0 : item_->child(0, Key::string(assembly.name));
    const Tensor* const tensor =
        node == kNoIndex ? nullptr : item_->tensor_at(node);
    if (tensor == nullptr)
      return fail(ErrorKind::kCorrupt, "its item holds no such tensor");
    if (!(tensor->dtype == assembly.dtype) ||
        !std::ranges::equal(tensor->shape, chunk.sizes))
      return fail(ErrorKind::kCorrupt,
                  "the metadata says that its item is {} ({}), but it is {} "
                  "({})",
                  assembly.dtype.name, fmt::join(chunk.sizes, ", "),
                  tensor->dtype.name, fmt::join(tensor->shape, ", "));
    if (!tensor->readable())
      return fail(ErrorKind::kCorrupt, "its item cannot be read: {}",
                  tensor->problem);
    return prepare(*tensor);
  }

  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) override {
    if (reader_)
      return reader_->read_at(begin_ + offset, to);
    const Bytes part = TRY(slice(whole_, offset, to.size()));
    std::memcpy(to.data(), part.data(), to.size());
    return {};
  }

  std::optional<Bytes> view(std::uint64_t offset,
                            std::uint64_t size) const override {
    if (reader_)
      return reader_->mapped_at(begin_ + offset, size);
    const Result<Bytes> part = slice(whole_, offset, size);
    return part ? std::optional(*part) : std::nullopt;
  }

  Result<> check() const override {
    return TensorReader(*item_).check_record(*storage_);
  }

  const Checkpoint* checkpoint() const override { return &*item_; }

  std::uint64_t memory() const override {
    return whole_.size() + (in_memory_ ? item_->files().front()->size() : 0);
  }

 private:
  // Plain row-major bytes are read where they are; others are copied into that
  // order once.
  Result<> prepare(const Tensor& tensor) {
    const Storage& storage = item_->storages()[tensor.storage];
    storage_ = &storage;
    if (is_contiguous(tensor) && tensor.dtype.packed == 1 &&
        !tensor.conjugated && !tensor.negated && !storage.big_endian) {
      reader_ = TRY(StorageReader::open(*item_, storage));
      begin_ = tensor.offset * tensor.dtype.size;
      return {};
    }
    whole_.resize(tensor.bytes());
    return TensorReader(*item_, {.crc = CrcCheck::kNever}).read(tensor, whole_);
  }

  std::unique_ptr<DataFile> file_;  // until it is the item's
  const Context& context_;          // of the checkpoint it is an item of
  const bool in_memory_;
  std::optional<Checkpoint> item_;
  const Storage* storage_ = nullptr;
  std::optional<StorageReader> reader_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> whole_;
};

}  // namespace

Result<std::unique_ptr<DataFile>> open_item_file(
    const CheckpointContents& checkpoint, const DataFile& file,
    const Extent& extent, std::span<const std::string_view> transforms,
    std::uint64_t expected) {
  if (transforms.empty())
    return DataFile::part(file, extent);
  std::vector<TransformRequest> requests;
  requests.reserve(transforms.size());
  for (const std::string_view descriptor : transforms)
    requests.push_back({std::string(descriptor)});
  TransformSettings settings;
  settings.key = checkpoint.key ? &*checkpoint.key : nullptr;
  settings.limits = file.limits();
  const TransformChain chain =
      TRY(TransformChain::make(registry_of(checkpoint), requests, settings));
  const Bytes encoded = TRY(slice(file.bytes(), extent.offset, extent.size));
  MemorySource below(encoded);
  const std::unique_ptr<Source> source = TRY(chain.transform_from(below));
  const std::uint64_t room =
      std::min(expected, encoded.size() * kMostExpansion);
  return DataFile::in_memory(
      file,
      TRY(WholeStream::read(*source, room, file.limits().max_inflated_bytes)));
}

Result<std::unique_ptr<AssemblyItem>> open_item(
    const Checkpoint& /*outer*/, const CheckpointContents& checkpoint,
    const Assembly& assembly, const AssemblyChunk& chunk) {
  if (!chunk.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", chunk.problem);
  const DataFile& file = *checkpoint.files[chunk.file];
  const Bytes front = TRY(slice(file.bytes(), chunk.extent.offset,
                                std::min<std::uint64_t>(4, chunk.extent.size)));
  // A tensor of a safetensors file is found through the header of that file.
  const bool plain = chunk.transforms.empty();
  const bool within =
      plain && !is_torch_zip(front) && is_safetensors(file.bytes());
  const Extent extent = within ? Extent{0, file.size()} : chunk.extent;
  auto item = std::make_unique<ItemTensor>(
      TRY(open_item_file(checkpoint, file, extent, chunk.transforms,
                         assembly.bytes_of(chunk))),
      checkpoint.context, !plain);
  TRY(item->open(assembly, chunk));
  return item;
}

}  // namespace postflight
