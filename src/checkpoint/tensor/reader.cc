#include "checkpoint/tensor/reader.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "checkpoint/model/stream_copy.h"
#include "checkpoint/tensor/gather.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/strided_copy.h"
#include "checkpoint/zip/crc32.h"

namespace postflight {
namespace {

// Small enough to be still in the cache when its CRC is taken.
constexpr std::size_t kCrcPiece = 256 << 10;
// Neighbours are read together up to so many bytes; larger tensors are divided
// among threads in pieces of kReadAtOnce.
constexpr std::uint64_t kTogether = 1 << 20;
constexpr std::uint64_t kReadAtOnce = 8 << 20;

bool needs_finish(const Tensor& tensor, const Storage& storage) {
  return tensor.conjugated || tensor.negated ||
         (storage.big_endian && tensor.dtype.swap > 1);
}

Result<> check_readable(const Tensor& tensor) {
  if (tensor.has_parts())
    return fail(ErrorKind::kUnsupported,
                "a tensor of layout {} has no bytes of its own; read its parts",
                tensor.layout);
  if (tensor.storage == kNoIndex)
    return fail(ErrorKind::kUnsupported, "it is on device {} and has no bytes",
                tensor.device);
  if (!tensor.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", tensor.problem);
  return {};
}

// Whether its bytes are contiguous in the storage and need no conversion.
bool is_straight(const Tensor& tensor, const Storage& storage) {
  return is_contiguous(tensor) && !needs_finish(tensor, storage);
}

std::pair<std::size_t, std::size_t> chunk_range(const Tensor& tensor,
                                                const Storage& storage) {
  const std::uint64_t begin = tensor.offset * tensor.dtype.size;
  return storage.assembly->chunks_in(begin, begin + tensor.bytes());
}

// How many chunks of an assembled tensor are needed; 0 for any other.
std::size_t chunks_of(const Tensor& tensor, const Storage& storage) {
  if (storage.assembly == nullptr)
    return 0;
  const auto [first, last] = chunk_range(tensor, storage);
  return last - first;
}

// A tensor, or one chunk of it, that cannot be read straight to its place.
struct Other {
  const TensorTarget* target = nullptr;
  std::optional<std::size_t> chunk = {};
};

// An extent of a file that is read straight to its place.
struct Straight {
  const DataFile* file = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> to;
  std::uint32_t* crc = nullptr;  // gets that of its bytes, if wanted
};

// A record that is read in pieces, and the CRC of each.
struct RecordPieces {
  const Storage* storage = nullptr;
  std::vector<std::uint32_t> crcs;
};

bool has_crc(const Storage& storage) {
  return storage.entry != nullptr && storage.entry->crc32 != 0;
}

// Whether its elements are all bytes of the record, in order.
bool is_record(const Tensor& tensor, const Storage& storage) {
  return tensor.offset == 0 && is_contiguous(tensor) &&
         tensor.bytes() == storage.size;
}

Result<> compare_crc(const Storage& storage, std::uint32_t crc) {
  if (crc == storage.entry->crc32)
    return {};
  return fail(ErrorKind::kCorrupt, "{}: {}; --no-crc reads it as it is",
              storage.entry->name, crc_mismatch(crc, storage.entry->crc32));
}

Result<> read_one(const Straight& stretch) {
  if (stretch.crc == nullptr)
    return stretch.file->read_at(stretch.offset, stretch.to);
  for (std::size_t at = 0; at < stretch.to.size(); at += kCrcPiece) {
    const std::span<std::byte> piece =
        stretch.to.subspan(at, std::min(kCrcPiece, stretch.to.size() - at));
    TRY(stretch.file->read_at(stretch.offset + at, piece));
    *stretch.crc = crc32_of(piece, *stretch.crc);
  }
  return {};
}

// Several of them that are close together.
struct Batch {
  std::size_t first = 0;
  std::size_t count = 0;
};

Result<> read_batch(std::span<const Straight> stretches, std::uint64_t total) {
  const DataFile& file = *stretches[0].file;
  if (stretches.size() == 1)
    return read_one(stretches[0]);
  // Many small ones are copied from the mapping.
  const Straight& last = stretches.back();
  const std::uint64_t begin = stretches[0].offset;
  if (const std::optional<Bytes> mapped =
          file.mapped_at(begin, last.offset + last.to.size() - begin)) {
    const StreamCopy copier(total);
    for (const Straight& stretch : stretches) {
      const Bytes from =
          mapped->subspan(stretch.offset - begin, stretch.to.size());
      if (stretch.crc != nullptr)
        *stretch.crc = crc32_of(from);
      copier.copy(from, stretch.to);
    }
    return {};
  }
  thread_local std::vector<std::byte> gap(kLongestGap);
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(2 * stretches.size());
  std::uint64_t at = begin;
  for (const Straight& stretch : stretches) {
    if (stretch.offset > at)
      pieces.push_back(std::span(gap).first(stretch.offset - at));
    pieces.push_back(stretch.to);
    at = stretch.offset + stretch.to.size();
  }
  TRY(file.read_at(begin, pieces));
  for (const Straight& stretch : stretches)
    if (stretch.crc != nullptr)
      *stretch.crc = crc32_of(stretch.to);
  return {};
}

std::vector<Batch> batches_of(std::span<const Straight> stretches) {
  std::vector<Batch> batches;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (i > 0) {
      const Straight& before = stretches[i - 1];
      const std::uint64_t end = before.offset + before.to.size();
      const Straight& now = stretches[i];
      if (now.file == before.file && now.offset >= end &&
          now.offset - end <= kLongestGap &&
          bytes + now.to.size() <= kTogether) {
        ++batches.back().count;
        bytes += now.to.size();
        continue;
      }
    }
    batches.push_back({i, 1});
    bytes = stretches[i].to.size();
  }
  return batches;
}

}  // namespace

class TensorReader::CheckedRecords {
 public:
  bool contains(std::uint32_t storage) {
    const std::scoped_lock lock(mutex_);
    return storages_.contains(storage);
  }
  void add(std::uint32_t storage) {
    const std::scoped_lock lock(mutex_);
    storages_.insert(storage);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint32_t> storages_;
};

TensorReader::TensorReader(const Checkpoint& checkpoint,
                           const ReadOptions& options)
    : checkpoint_(checkpoint),
      threads_(options.threads.value_or(checkpoint.context().threads)),
      crc_(options.crc),
      checked_(std::make_unique<CheckedRecords>()) {}

TensorReader::TensorReader(TensorReader&&) noexcept = default;
TensorReader::~TensorReader() = default;

bool TensorReader::checks(const Tensor& tensor) const {
  return crc_ == CrcCheck::kAlways ||
         (crc_ == CrcCheck::kWhole && !tensor.is_slice);
}

Result<> TensorReader::check_once(const Tensor& tensor,
                                  const Storage& storage) const {
  if (!has_crc(storage) || checked_->contains(tensor.storage))
    return {};
  TRY(check_record(storage));
  checked_->add(tensor.storage);
  return {};
}

Result<> TensorReader::read(const Tensor& tensor,
                            std::span<std::byte> to) const {
  return read(tensor, to, threads_);
}

Result<> TensorReader::read(const Tensor& tensor, std::span<std::byte> to,
                            std::size_t threads) const {
  TRY(check_readable(tensor));
  if (to.size() != tensor.bytes())
    return fail(ErrorKind::kUsage,
                "room for {} bytes was given for a tensor of {}", to.size(),
                tensor.bytes());
  if (to.empty())
    return {};
  const Storage& storage = checkpoint_.storages()[tensor.storage];
  if (threads != 1 && is_straight(tensor, storage) &&
      chunks_of(tensor, storage) > 1) {
    const TensorTarget target{&tensor, to};
    return read_all(std::span(&target, 1));
  }
  StorageReader reader =
      TRY(StorageReader::open(checkpoint_, storage, checks(tensor)));
  if (checks(tensor) && is_record(tensor, storage)) {
    TRY(read_checked(storage, reader, to));
  } else {
    if (checks(tensor))
      TRY(check_once(tensor, storage));
    TRY(read_from(reader, tensor, to, threads));
  }
  if (needs_finish(tensor, storage))
    finish_elements(tensor, storage.big_endian, to);
  return {};
}

Result<> TensorReader::read_from(StorageReader& reader, const Tensor& tensor,
                                 std::span<std::byte> to,
                                 std::size_t threads) const {
  if (tensor.dtype.packed > 1)  // packed, and known to be in order
    return reader.read_at(0, to);
  if (is_contiguous(tensor))
    return reader.read_at(tensor.offset * tensor.dtype.size, to);
  return gather(reader, tensor, to, {.mapped = true, .threads = threads});
}

Result<> TensorReader::read_checked(const Storage& storage,
                                    StorageReader& reader,
                                    std::span<std::byte> to) const {
  std::uint32_t crc = 0;
  const bool compared = has_crc(storage);
  for (std::size_t at = 0; at < to.size(); at += kCrcPiece) {
    const std::span<std::byte> piece =
        to.subspan(at, std::min(kCrcPiece, to.size() - at));
    TRY(reader.read_at(at, piece));
    if (compared)
      crc = crc32_of(piece, crc);
  }
  return compared ? compare_crc(storage, crc) : Result<>();
}

Result<> TensorReader::check_record(const Storage& storage) const {
  if (!has_crc(storage))
    return {};
  StorageReader reader = TRY(StorageReader::open(checkpoint_, storage));
  std::vector<std::byte> room(
      std::min<std::uint64_t>(kCrcPiece, reader.size()));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < reader.size(); at += room.size()) {
    const std::span<std::byte> piece = std::span(room).first(
        std::min<std::uint64_t>(room.size(), reader.size() - at));
    TRY(reader.read_at(at, piece));
    crc = crc32_of(piece, crc);
  }
  return compare_crc(storage, crc);
}

Result<> TensorReader::read_all(std::span<const TensorTarget> targets) const {
  std::vector<Straight> straight;
  std::vector<Other> others;
  std::deque<RecordPieces> records;
  straight.reserve(targets.size());
  for (const TensorTarget& target : targets) {
    const Tensor& tensor = *target.tensor;
    TRY(check_readable(tensor));
    if (target.to.size() != tensor.bytes())
      return fail(ErrorKind::kUsage,
                  "room for {} bytes was given for a tensor of {}",
                  target.to.size(), tensor.bytes());
    if (target.to.empty())
      continue;
    const Storage& storage = checkpoint_.storages()[tensor.storage];
    const bool as_it_is = is_straight(tensor, storage);
    if (as_it_is && storage.assembly != nullptr && storage.problem.empty()) {
      const auto [first, last] = chunk_range(tensor, storage);
      for (std::size_t chunk = first; chunk < last; ++chunk)
        others.push_back({&target, chunk});
      continue;
    }
    const bool compared = checks(tensor) && has_crc(storage);
    if (!as_it_is || (compared && !is_record(tensor, storage))) {
      others.push_back({&target});
      continue;
    }
    const StorageReader reader = TRY(StorageReader::open(checkpoint_, storage));
    if (!reader.extent()) {
      others.push_back({&target});
      continue;
    }
    const std::uint64_t begin =
        reader.extent()->offset + tensor.offset * tensor.dtype.size;
    const std::uint64_t pieces = (target.to.size() - 1) / kReadAtOnce + 1;
    if (compared)
      records.push_back({&storage, std::vector<std::uint32_t>(pieces)});
    for (std::uint64_t i = 0; i < pieces; ++i) {
      const std::uint64_t at = i * kReadAtOnce;
      straight.push_back(
          {reader.file(), begin + at,
           target.to.subspan(
               at, std::min<std::uint64_t>(kReadAtOnce, target.to.size() - at)),
           compared ? &records.back().crcs[i] : nullptr});
    }
  }
  std::ranges::sort(straight, [](const Straight& a, const Straight& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  const std::vector<Batch> batches = batches_of(straight);
  const std::size_t jobs = batches.size() + others.size();
  // Threads read several tensors, or else the parts of one.
  const std::size_t each = jobs > 1 ? 1 : threads_;
  std::uint64_t bytes = 0;
  for (const TensorTarget& target : targets)
    bytes += target.to.size();
  const auto work = [&](std::size_t job) -> Result<> {
    if (job < batches.size())
      return read_batch(
          std::span(straight).subspan(batches[job].first, batches[job].count),
          bytes);
    const auto& [target, chunk] = others[job - batches.size()];
    const Tensor& tensor = *target->tensor;
    if (!chunk)
      return read(tensor, target->to, each);
    const Storage& storage = checkpoint_.storages()[tensor.storage];
    return AssemblyReader(*storage.assembly, checkpoint_.item_opener(),
                          checks(tensor))
        .read_chunk(*chunk, tensor.offset * tensor.dtype.size, target->to);
  };
  // Starting a thread costs more than a small read.
  const WorkerPool pool(bytes < 2 * kTogether ? 1 : threads_);
  TRY(pool.map_ordered(
      jobs, work,
      [](std::size_t, Result<> result) -> Result<> { return result; }));
  for (const RecordPieces& record : records) {
    std::uint32_t crc = record.crcs.front();
    std::uint64_t left = record.storage->size - kReadAtOnce;
    for (std::size_t i = 1; i < record.crcs.size(); ++i) {
      crc = crc32_joined(crc, record.crcs[i],
                         std::min<std::uint64_t>(kReadAtOnce, left));
      left -= kReadAtOnce;
    }
    TRY(compare_crc(*record.storage, crc));
  }
  return {};
}

std::optional<Bytes> TensorReader::view(const Tensor& tensor) const {
  if (!tensor.readable() || !is_contiguous(tensor))
    return std::nullopt;
  const Storage& storage = checkpoint_.storages()[tensor.storage];
  if (needs_finish(tensor, storage))
    return std::nullopt;
  const Result<StorageReader> reader =
      StorageReader::open(checkpoint_, storage);
  const std::optional<Bytes> all = reader ? reader->view() : std::nullopt;
  if (!all)
    return std::nullopt;
  const Result<Bytes> part =
      slice(*all, tensor.offset * tensor.dtype.size, tensor.bytes());
  return part ? std::optional(*part) : std::nullopt;
}

Result<> TensorReader::stream(const Tensor& tensor, std::size_t piece,
                              const Sink& sink) const {
  TRY(check_readable(tensor));
  const std::uint64_t total = tensor.bytes();
  if (total == 0)
    return {};
  const Storage& storage = checkpoint_.storages()[tensor.storage];
  StorageReader reader =
      TRY(StorageReader::open(checkpoint_, storage, checks(tensor)));
  std::vector<std::byte> room(std::min<std::uint64_t>(piece, total));
  const bool compared = checks(tensor) && has_crc(storage);
  const bool on_the_way = compared && is_record(tensor, storage);
  if (compared && !on_the_way)
    TRY(check_once(tensor, storage));
  if (is_contiguous(tensor)) {
    std::uint32_t crc = 0;
    const std::uint64_t unit = tensor.dtype.size;
    room.resize(std::max<std::uint64_t>(unit, room.size() / unit * unit));
    const std::uint64_t begin = tensor.offset * unit;
    for (std::uint64_t at = 0; at < total; at += room.size()) {
      const std::span<std::byte> part = std::span(room).first(
          std::min<std::uint64_t>(room.size(), total - at));
      TRY(reader.read_at(begin + at, part));
      if (on_the_way)
        crc = crc32_of(part, crc);
      finish_elements(tensor, storage.big_endian, part);
      // The last piece is held back until all of them are known to be right.
      if (on_the_way && at + part.size() == total)
        TRY(compare_crc(storage, crc));
      TRY(sink(part));
    }
    return {};
  }
  // Slices that are whole in all dimensions after one of them.
  std::uint64_t inner = tensor.dtype.size;
  std::size_t cut = tensor.shape.size();
  while (cut > 0) {
    const auto count = static_cast<std::uint64_t>(tensor.shape[cut - 1]);
    if (inner * count > room.size())
      break;
    inner *= count;
    --cut;
  }
  std::vector<SliceRange> ranges;
  for (const std::int64_t size : tensor.shape)
    ranges.push_back({0, static_cast<std::uint64_t>(size), 1, false});
  const std::uint64_t share = std::max<std::uint64_t>(1, room.size() / inner);
  room.resize(std::max<std::uint64_t>(room.size(), inner));
  for (std::size_t i = 0; i < cut; ++i)
    ranges[i].count = 1;
  const std::size_t last = cut == 0 ? 0 : cut - 1;
  const auto size_at = [&](std::size_t i) {
    return static_cast<std::uint64_t>(tensor.shape[i]);
  };
  for (;;) {
    if (cut > 0)
      ranges[last].count = std::min(share, size_at(last) - ranges[last].start);
    const TensorSlice part = slice_tensor(tensor, ranges);
    const std::span<std::byte> to = std::span(room).first(part.tensor.bytes());
    TRY(gather(reader, part.tensor, to));
    finish_elements(tensor, storage.big_endian, to);
    TRY(sink(to));
    std::size_t i = cut;
    for (;;) {
      if (i == 0)
        return {};
      --i;
      ranges[i].start += i == last ? share : 1;
      if (ranges[i].start < size_at(i))
        break;
      ranges[i].start = 0;
    }
  }
}

ReadBudget::ReadBudget(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint),
      // Four gigabytes are some seconds of work for whoever sent a few bytes.
      left_(std::min(checkpoint.limits().max_materialised_bytes,
                     std::uint64_t{4} << 30)) {
  constexpr std::uint64_t kTimesRead = 16;  // views of one storage
  for (const DataFile* const file : checkpoint.files())
    left_ += file->size() * kTimesRead;
}

Result<> ReadBudget::take(const Tensor& tensor) {
  if (!tensor.readable())
    return {};
  const Storage& storage = checkpoint_.storages()[tensor.storage];
  const bool packed = storage.entry != nullptr && storage.entry->method != 0;
  const std::uint64_t cost =
      std::max(tensor.bytes(), packed ? storage.size : 0);
  if (cost > left_)
    return fail(ErrorKind::kRefused,
                "its {} bytes repeat far fewer; together, the tensors exceed "
                "what is allowed (max_materialised_bytes)",
                tensor.bytes());
  left_ -= cost;
  return {};
}

}  // namespace postflight
