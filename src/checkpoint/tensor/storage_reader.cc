#include "checkpoint/tensor/storage_reader.h"

#include <algorithm>
#include <cstring>

namespace postflight {

Result<StorageReader> StorageReader::open(const Checkpoint& checkpoint,
                                          const Storage& storage) {
  if (!storage.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", storage.problem);
  StorageReader reader;
  reader.size_ = storage.size;
  if (storage.assembly != nullptr) {
    reader.assembled_ = std::make_unique<AssemblyReader>(
        *storage.assembly, checkpoint.item_opener());
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
  constexpr std::uint16_t kEncrypted = 0x2001;
  if ((entry.flags & kEncrypted) != 0)
    return fail(ErrorKind::kUnsupported,
                "{}: it is encrypted; decrypt the archive first", entry.name);
  const Extent where = TRY(reader.file_->extent(entry));
  if (entry.method == 0) {
    if (where.size != entry.size)
      return fail(ErrorKind::kCorrupt,
                  "{}: it is said to have {} bytes, of which {} are stored",
                  entry.name, entry.size, where.size);
    reader.extent_ = where;
    return reader;
  }
  if (entry.method != 8)
    return fail(ErrorKind::kUnsupported,
                "{}: it is compressed by method {}, and only 0 (stored) and 8 "
                "(deflated) are read; pack the archive again",
                entry.name, entry.method);
  // Deflate can't do better than 1032:1.
  if (entry.size / 1032 > where.size + 1 ||
      entry.size > reader.file_->limits().max_inflated_bytes)
    return fail(ErrorKind::kRefused,
                "{}: {} bytes cannot come from the {} it has, or are more than "
                "allowed (max_inflated_bytes)",
                entry.name, entry.size, where.size);
  reader.deflated_ =
      TRY(slice(reader.file_->bytes(), where.offset, where.size));
  return reader;
}

std::optional<Bytes> StorageReader::view() const {
  if (extent_)
    return file_->bytes().subspan(extent_->offset, extent_->size);
  if (deflated_.empty() && assembled_ == nullptr)
    return inside_;
  return std::nullopt;
}

std::optional<Bytes> StorageReader::mapped_at(std::uint64_t offset,
                                              std::uint64_t size) const {
  if (!extent_ || offset > extent_->size || size > extent_->size - offset)
    return std::nullopt;
  return file_->mapped_at(extent_->offset + offset, size);
}

Result<> StorageReader::read_at(std::uint64_t offset, std::span<std::byte> to) {
  if (offset > size_ || to.size() > size_ - offset)
    return fail(ErrorKind::kCorrupt,
                "bytes {} to {} lie outside a storage of {} bytes", offset,
                offset + to.size(), size_);
  if (to.empty())
    return {};
  if (assembled_ != nullptr)
    return assembled_->read_at(offset, to);
  if (extent_)
    return file_->read_at(extent_->offset + offset, to);
  if (deflated_.empty()) {
    std::memcpy(to.data(), inside_.data() + offset, to.size());
    return {};
  }
  if (stream_ == nullptr || stream_->position() > offset)
    stream_ = std::make_unique<InflateStream>(deflated_);
  TRY(stream_->skip(offset - stream_->position()));
  return stream_->read(to);
}

}  // namespace postflight
