// The items of distributed checkpoints: each is an archive of torch.save that
// holds one tensor, perhaps behind transforms, or a tensor of a safetensors
// file.

#include "checkpoint/dcp/item.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/verification/verification.h"
#include "checkpoint/zip/format.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_chain.h"
#include "stream/memory_stream.h"

namespace postflight {
namespace {

const ExtensionRegistry& registry_of(const Checkpoint& checkpoint) {
  static const ExtensionRegistry built_in = built_in_registry();
  return checkpoint.extensions != nullptr ? *checkpoint.extensions : built_in;
}

// What a decoder is given room for on the word of a file, as often as what it
// decodes: more than weights ever compress to.
constexpr std::uint64_t kMostExpansion = 64;

bool begins_zip(Bytes bytes) {
  return as_text(bytes).starts_with(kLocalSignature);
}

class ItemTensor : public AssemblyItem {
 public:
  explicit ItemTensor(std::unique_ptr<DataFile> file, bool in_memory)
      : in_memory_(in_memory) {
    item_.files.push_back(std::move(file));
  }

  Result<> open(const Assembly& assembly, const AssemblyChunk& chunk) {
    const DataFile& file = *item_.files.front();
    const Limits limits = file.limits();
    const SourceContext context{item_, limits};
    if (begins_zip(file.bytes())) {
      TRY(add_torch_zip(0, context));
      node_ = 0;
    } else {
      TRY(add_safetensors(0, context));
      node_ = item_.child(0, Key::string(assembly.name));
    }
    const Tensor* const tensor =
        node_ == kNoIndex ? nullptr : item_.tensor_at(item_.nodes()[node_]);
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

  const Checkpoint& checkpoint() const { return item_; }

  std::uint64_t memory() const override {
    return whole_.size() + (in_memory_ ? item_.files.front()->size() : 0);
  }

 private:
  // What lies there as it is wanted is read from there; else it is put in order
  // once.
  Result<> prepare(const Tensor& tensor) {
    const Storage& storage = item_.storages()[tensor.storage];
    if (is_contiguous(tensor) && tensor.dtype.per_byte == 1 &&
        !tensor.conjugated && !tensor.negated && !storage.big_endian) {
      reader_ = TRY(StorageReader::open(item_, storage));
      begin_ = tensor.offset * tensor.dtype.size;
      return {};
    }
    whole_.resize(tensor.bytes());
    return TensorReader(item_).read(tensor, whole_);
  }

  Checkpoint item_;
  bool in_memory_;
  std::uint32_t node_ = kNoIndex;
  std::optional<StorageReader> reader_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> whole_;
};

Result<std::unique_ptr<ItemTensor>> open_tensor_item(
    const Checkpoint& checkpoint, const Assembly& assembly,
    const AssemblyChunk& chunk) {
  if (!chunk.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", chunk.problem);
  const DataFile& file = *checkpoint.files[chunk.file];
  const Bytes front = TRY(slice(file.bytes(), chunk.extent.offset,
                                std::min<std::uint64_t>(4, chunk.extent.size)));
  // A tensor of a safetensors file lies where that file says.
  const bool plain = chunk.transforms.empty();
  const Extent extent =
      plain && !begins_zip(front) ? Extent{0, file.size()} : chunk.extent;
  auto item = std::make_unique<ItemTensor>(
      TRY(open_item_file(checkpoint, file, extent, chunk.transforms,
                         assembly.bytes_of(chunk))),
      !plain);
  TRY(item->open(assembly, chunk));
  return item;
}

std::string place_of(const Assembly& assembly, const AssemblyChunk& chunk) {
  return fmt::format("{} at ({})", assembly.name,
                     fmt::join(chunk.offsets, ", "));
}

}  // namespace

Result<std::unique_ptr<DataFile>> open_item_file(
    const Checkpoint& checkpoint, const DataFile& file, const Extent& extent,
    std::span<const std::string_view> transforms, std::uint64_t expected) {
  if (transforms.empty())
    return DataFile::part(file, extent);
  std::vector<TransformRequest> requests;
  requests.reserve(transforms.size());
  for (const std::string_view descriptor : transforms)
    requests.push_back({std::string(descriptor)});
  TransformSettings settings;
  settings.key = checkpoint.secret_key;
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

OpenItem item_opener(const Checkpoint& checkpoint) {
  return [&checkpoint](const Assembly& assembly, const AssemblyChunk& chunk)
             -> Result<std::unique_ptr<AssemblyItem>> {
    Result<std::unique_ptr<ItemTensor>> item =
        open_tensor_item(checkpoint, assembly, chunk);
    if (!item)
      return tl::unexpected<Error>(
          std::move(item).error().in(place_of(assembly, chunk)));
    return *std::move(item);
  };
}

void verify_items(const Checkpoint& checkpoint, const VerifyOptions& options,
                  Verification& result) {
  for (const Assembly* const assembly : checkpoint.assemblies) {
    for (const AssemblyChunk& chunk : assembly->chunks) {
      if (!chunk.problem.empty())
        continue;  // which the tensor has as its own
      const std::string place = place_of(*assembly, chunk);
      const Result<std::unique_ptr<ItemTensor>> item =
          open_tensor_item(checkpoint, *assembly, chunk);
      if (!item) {
        result.findings.push_back({"bad_item", Severity::kError,
                                   std::string(item.error().message()), place});
        result.broken.insert(assembly);
        continue;
      }
      const std::size_t before = result.findings.size();
      for (const Finding& finding : (*item)->checkpoint().findings)
        result.report(finding.kind, finding.severity, finding.message,
                      finding.where);
      const DataFile& file = *(*item)->checkpoint().files.front();
      if (file.zip)
        verify_archive((*item)->checkpoint(), file, options, result);
      for (std::size_t i = before; i < result.findings.size(); ++i)
        result.findings[i].where =
            fmt::format("{}: {}", place, result.findings[i].where);
    }
  }
}

}  // namespace postflight
