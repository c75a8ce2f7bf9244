#include "checkpoint/joining/part_item.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

bool is_plain(const Tensor& tensor, const Storage& storage) {
  return is_contiguous(tensor) && tensor.dtype.packed == 1 &&
         !tensor.conjugated && !tensor.negated && !storage.big_endian;
}

TensorSlice part_of(const Tensor& tensor, const AssemblyChunk& chunk) {
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < chunk.sizes.size(); ++i)
    ranges.push_back({static_cast<std::uint64_t>(chunk.from[i]),
                      static_cast<std::uint64_t>(chunk.sizes[i]), 1, false});
  return slice_tensor(tensor, ranges);
}

class PartItem : public AssemblyItem {
 public:
  PartItem(const Checkpoint& checkpoint, const AssemblyChunk& chunk)
      : checkpoint_(checkpoint),
        chunk_(chunk),
        part_(part_of(whole_tensor(), chunk)) {}

  Result<> open() {
    const Storage& storage = checkpoint_.storages()[whole_tensor().storage];
    if (is_plain(part_.tensor, storage)) {
      reader_ = TRY(StorageReader::open(checkpoint_, storage));
      begin_ = part_.tensor.offset * part_.tensor.dtype.size;
    }
    return {};
  }

  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) override {
    if (reader_)
      return reader_->read_at(begin_ + offset, to);
    TRY(gather());
    const Bytes from = TRY(slice(gathered_, offset, to.size()));
    std::memcpy(to.data(), from.data(), to.size());
    return {};
  }

  std::optional<Bytes> view(std::uint64_t offset,
                            std::uint64_t size) const override {
    return reader_ ? reader_->mapped_at(begin_ + offset, size) : std::nullopt;
  }

  std::uint64_t memory() const override {
    return reader_ ? 0 : part_.tensor.bytes();
  }

  Result<> check() const override {
    const Tensor& whole = whole_tensor();
    const TensorReader reader(checkpoint_, {.threads = 1});
    TRY(reader.check_record(checkpoint_.storages()[whole.storage]));
    for (const std::int64_t replica : chunk_.replicas)
      TRY(compare(reader,
                  checkpoint_.tensors()[static_cast<std::size_t>(replica)]));
    return {};
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;

  const Tensor& whole_tensor() const {
    return checkpoint_.tensors()[chunk_.tensor];
  }

  // Strided elements are put in order once.
  Result<> gather() {
    if (!gathered_.empty())
      return {};
    gathered_.resize(part_.tensor.bytes());
    return TensorReader(checkpoint_, {.threads = 1, .crc = CrcCheck::kNever})
        .read(part_.tensor, gathered_);
  }

  Result<> compare(const TensorReader& reader, const Tensor& other) const {
    if (!other.readable())
      return {};
    // Both are read in pieces, by turns.
    const std::uint64_t size = part_.tensor.bytes();
    const TensorSlice same = part_of(other, chunk_);
    const std::uint64_t unit = part_.tensor.dtype.size;
    const Storage& ours = checkpoint_.storages()[part_.tensor.storage];
    const Storage& theirs = checkpoint_.storages()[other.storage];
    const bool in_pieces =
        is_plain(part_.tensor, ours) && is_plain(same.tensor, theirs);
    const std::uint64_t most = in_pieces ? kPiece / unit * unit : size;
    std::vector<std::byte> a;
    std::vector<std::byte> b;
    for (std::uint64_t at = 0; at < size; at += most) {
      const std::uint64_t now = std::min(most, size - at);
      a.resize(now);
      b.resize(now);
      if (in_pieces) {
        TRY(read_stretch(reader, part_.tensor, at / unit, a));
        TRY(read_stretch(reader, same.tensor, at / unit, b));
      } else {
        TRY(reader.read(part_.tensor, a));
        TRY(reader.read(same.tensor, b));
      }
      if (a != b)
        return fail(ErrorKind::kCorrupt,
                    "ranks that should hold the same part of it differ; read "
                    "one of them by --rank");
    }
    return {};
  }

  static Result<> read_stretch(const TensorReader& reader, const Tensor& from,
                               std::uint64_t begin, std::span<std::byte> to) {
    Tensor stretch = from;
    const std::int64_t count[] = {
        static_cast<std::int64_t>(to.size() / from.dtype.size)};
    const std::int64_t step[] = {1};
    stretch.shape = count;
    stretch.stride = step;
    stretch.offset += begin;
    stretch.is_slice = true;
    return reader.read(stretch, to);
  }

  const Checkpoint& checkpoint_;
  const AssemblyChunk& chunk_;
  TensorSlice part_;
  std::optional<StorageReader> reader_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> gathered_;
};

}  // namespace

std::optional<Bytes> bytes_in_file(const CheckpointContents& checkpoint,
                                   const Tensor& tensor) {
  const Storage& storage = checkpoint.tree.storages[tensor.storage];
  if (!is_plain(tensor, storage) || storage.assembly != nullptr)
    return std::nullopt;
  Bytes all = storage.inside;
  if (all.empty()) {
    const DataFile& file = *checkpoint.files[storage.file];
    Extent extent = storage.extent;
    if (storage.entry != nullptr) {
      const Result<Extent> found = file.extent(*storage.entry);
      if (!found || storage.entry->method != kStored)
        return std::nullopt;
      extent = *found;
    }
    const Result<Bytes> part = slice(file.bytes(), extent.offset, extent.size);
    if (!part)
      return std::nullopt;
    all = *part;
  }
  const Result<Bytes> its =
      slice(all, tensor.offset * tensor.dtype.size, tensor.bytes());
  return its ? std::optional(*its) : std::nullopt;
}

Result<std::unique_ptr<AssemblyItem>> open_part(
    const Checkpoint& checkpoint, const CheckpointContents& /*contents*/,
    const Assembly& /*assembly*/, const AssemblyChunk& chunk) {
  if (!chunk.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", chunk.problem);
  auto item = std::make_unique<PartItem>(checkpoint, chunk);
  TRY(item->open());
  return item;
}

std::optional<bool> have_same_bytes(const CheckpointContents& checkpoint,
                                    const Tensor& a, const Tensor& b,
                                    std::uint64_t most) {
  if (!(a.dtype == b.dtype) || !std::ranges::equal(a.shape, b.shape))
    return false;
  if (!a.readable() || !b.readable())
    return std::nullopt;
  if (a.bytes() == 0)
    return true;
  const Storage& of_a = checkpoint.tree.storages[a.storage];
  const Storage& of_b = checkpoint.tree.storages[b.storage];
  const bool alike =
      std::ranges::equal(a.stride, b.stride) && a.offset == b.offset &&
      a.conjugated == b.conjugated && a.negated == b.negated &&
      of_a.big_endian == of_b.big_endian && of_a.size == of_b.size;
  if (alike && of_a.entry != nullptr && of_b.entry != nullptr &&
      of_a.entry->crc32 != 0 && of_b.entry->crc32 != 0) {
    if (of_a.entry->crc32 == of_b.entry->crc32)
      return true;
    if (is_contiguous(a) && a.offset == 0 && a.bytes() == of_a.size)
      return false;
  }
  if (a.bytes() > most)
    return std::nullopt;
  const std::optional<Bytes> in_a = bytes_in_file(checkpoint, a);
  const std::optional<Bytes> in_b = bytes_in_file(checkpoint, b);
  if (!in_a || !in_b)
    return std::nullopt;
  return std::memcmp(in_a->data(), in_b->data(), in_a->size()) == 0;
}

}  // namespace postflight
