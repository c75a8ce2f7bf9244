#include "checkpoint/tensor/storage_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

constexpr std::uint64_t kDeflatedPiece = 64 << 10;

}  // namespace

Result<StorageReader> StorageReader::open(const Checkpoint& checkpoint,
                                          const Storage& storage, bool check) {
  if (!storage.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", storage.problem);
  StorageReader reader;
  reader.size_ = storage.size;
  if (storage.assembly != nullptr) {
    reader.assembled_ = std::make_unique<AssemblyReader>(
        *storage.assembly, checkpoint.item_opener(), check);
    return reader;
  }
  if (!storage.inside.empty() || checkpoint.files().empty() ||
      storage.size == 0) {
    reader.inside_ = storage.inside;
    return reader;
  }
  reader.file_ = checkpoint.files()[storage.file];
  if (storage.entry == nullptr) {
    reader.extent_ = storage.extent;
    return reader;
  }
  const ZipEntry& entry = *storage.entry;
  const Extent where = TRY(reader.file_->extent(entry));
  TRY(check_entry(entry, where.size, checkpoint.limits()));
  if (entry.method == kStored)
    reader.extent_ = where;
  else
    reader.deflated_ = where;
  return reader;
}

std::optional<Bytes> StorageReader::view() const {
  if (extent_)
    return file_->bytes().subspan(extent_->offset, extent_->size);
  if (!deflated_ && assembled_ == nullptr)
    return inside_;
  return std::nullopt;
}

std::optional<Bytes> StorageReader::mapped_at(std::uint64_t offset,
                                              std::uint64_t size) const {
  if (!extent_ || offset > extent_->size || size > extent_->size - offset)
    return std::nullopt;
  return file_->mapped_at(extent_->offset + offset, size);
}

std::unique_ptr<InflateStream> StorageReader::inflated_from_start() const {
  struct Pieces {
    const DataFile* file;
    Extent rest;
    std::vector<std::byte> room = {};
  };
  return std::make_unique<InflateStream>(
      [pieces = Pieces{file_, *deflated_}]() mutable -> Result<Bytes> {
        Extent& rest = pieces.rest;
        pieces.room.resize(std::min(kDeflatedPiece, rest.size));
        TRY(pieces.file->read_at(rest.offset, pieces.room));
        rest.offset += pieces.room.size();
        rest.size -= pieces.room.size();
        return Bytes(pieces.room);
      });
}

Result<> StorageReader::read_at(std::uint64_t offset, std::span<std::byte> to) {
  if (offset > size_ || to.size() > size_ - offset)
    return fail(ErrorKind::kCorrupt,
                "bytes {} to {} are outside a storage of {} bytes", offset,
                offset + to.size(), size_);
  if (to.empty())
    return {};
  if (assembled_ != nullptr)
    return assembled_->read_at(offset, to);
  if (extent_)
    return file_->read_at(extent_->offset + offset, to);
  if (!deflated_) {
    std::memcpy(to.data(), inside_.data() + offset, to.size());
    return {};
  }
  if (stream_ == nullptr || stream_->position() > offset)
    stream_ = inflated_from_start();
  TRY(stream_->skip(offset - stream_->position()));
  return stream_->read(to);
}

}  // namespace postflight
