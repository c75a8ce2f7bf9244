#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/model/tensor.h"
#include "checkpoint/tensor/storage_reader.h"

namespace postflight {

// Of which tensors the records are checked against their CRC. A record is read
// whole for that.
enum class CrcCheck : std::uint8_t {
  kNever,
  kWhole,   // of tensors as they were saved; not of slices and mapped views
  kAlways,  // of slices, too
};

struct ReadOptions {
  // 0 is one for each processor; by default as many as the checkpoint was
  // opened with.
  std::optional<std::size_t> threads = {};
  CrcCheck crc = CrcCheck::kWhole;
};

// Where to write a tensor.
struct TensorTarget {
  const Tensor* tensor = nullptr;
  std::span<std::byte> to;  // tensor->bytes() long
};

// Reads tensors, or slices of them, as the row-major bytes of their true
// values: strides are followed, byte order, conjugation and negation resolved.
// Only the needed bytes are read, and gaps of up to a page between them. Safe
// from any thread; the Checkpoint must outlive it.
class TensorReader {
 public:
  explicit TensorReader(const Checkpoint& checkpoint,
                        const ReadOptions& options = {});
  TensorReader(TensorReader&&) noexcept;
  ~TensorReader();

  Result<> read(const Tensor& tensor, std::span<std::byte> to) const;

  // Many at once: in file order, neighbours together, on several threads.
  Result<> read_all(std::span<const TensorTarget> targets) const;

  // The mapped bytes, unchecked, if they need no conversion. If another process
  // truncates the file, touching them raises SIGBUS.
  std::optional<Bytes> view(const Tensor& tensor) const;

  // The same bytes as read() in pieces of up to `piece`, front to back.
  using Sink = std::function<Result<>(Bytes)>;
  Result<> stream(const Tensor& tensor, std::size_t piece,
                  const Sink& sink) const;

  // Checks a record of an archive against its CRC, if it has one.
  Result<> check_record(const Storage& storage) const;

 private:
  // The records that were checked: several tensors may be views of one.
  class CheckedRecords;

  Result<> read(const Tensor& tensor, std::span<std::byte> to,
                std::size_t threads) const;
  Result<> read_from(StorageReader& reader, const Tensor& tensor,
                     std::span<std::byte> to, std::size_t threads) const;
  Result<> read_checked(const Storage& storage, StorageReader& reader,
                        std::span<std::byte> to) const;
  bool checks(const Tensor& tensor) const;
  // Unless it was checked before.
  Result<> check_once(const Tensor& tensor, const Storage& storage) const;

  const Checkpoint& checkpoint_;
  std::size_t threads_;
  CrcCheck crc_;
  std::unique_ptr<CheckedRecords> checked_;
};

// How many bytes the tensors of a checkpoint may have once read: a few times
// the size of its files, and Limits::max_materialised_bytes. A view of one byte
// can repeat it a trillion times.
class ReadBudget {
 public:
  explicit ReadBudget(const Checkpoint& checkpoint);

  // Takes the cost of reading a tensor; fails, and takes nothing, if less than
  // that is left.
  Result<> take(const Tensor& tensor);

 private:
  const Checkpoint& checkpoint_;
  std::uint64_t left_;
};

}  // namespace postflight
