#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "checkpoint/model/dtype.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/extent.h"

namespace postflight {

constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

struct Assembly;

// Bytes that tensors are views of: a record of an archive, a stretch of a
// file, bytes inside a pickle, or parts that are put together.
struct Storage {
  std::string_view key;
  std::uint64_t size = 0;  // in bytes, unpacked
  std::uint32_t file = 0;
  bool big_endian = false;
  // Where it lies: in an archive, whose local header says it exactly; inside
  // the pickle; or at an extent of the file.
  const ZipEntry* entry = nullptr;
  Bytes inside;
  Extent extent;
  const Assembly* assembly = nullptr;
  std::string_view problem;  // why its bytes can't be had; empty if they can
};

enum class TensorRole : std::uint8_t { kTensor, kParameter, kBuffer };

// A tensor as its checkpoint describes it. What a file declares was checked:
// `problem` says why its bytes can't be read, and if it is empty then offset,
// shape and stride stay inside the storage. Views are valid while the
// Checkpoint is.
struct Tensor {
  Dtype dtype;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> stride;  // in elements; 0 repeats
  std::uint64_t offset = 0;              // in elements
  std::uint32_t storage = kNoIndex;      // none: no bytes anywhere (meta)
  TensorRole role = TensorRole::kTensor;
  bool requires_grad = false;
  bool conjugated = false;
  bool negated = false;
  bool shape_known = true;  // not of a nested tensor
  bool in_part = false;  // its problem is of some bytes; slices may have none
  std::string_view device = "cpu";
  // "strided"; else ("sparse_coo", "nested", "DTensor") it is described by the
  // tensors and values below it and has no bytes of its own.
  std::string_view layout = "strided";
  std::string_view type;  // of a subclass; empty for torch's own
  std::string_view problem;

  bool has_parts() const { return layout != "strided"; }
  bool readable() const { return storage != kNoIndex && problem.empty(); }
  std::uint64_t elements() const;  // known not to overflow
  std::uint64_t bytes() const;     // of all elements, row-major
};

// Sets `problem` if what the tensor declares does not fit `available` bytes of
// storage: sizes or strides below zero, products that overflow, elements
// beyond the end.
std::string check_bounds(const Tensor& tensor, std::uint64_t available);

// Whether its elements lie in row-major order without gaps.
bool is_contiguous(const Tensor& tensor);

}  // namespace postflight
