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

// Bytes that tensors are views of: a record of an archive, an extent of a file,
// bytes inside a pickle, or chunks that are assembled.
struct Storage {
  std::string_view key;
  std::uint64_t size = 0;  // in bytes, uncompressed
  std::uint32_t file = 0;
  bool big_endian = false;
  // Where it is: a record of an archive, bytes inside the pickle, an extent of
  // the file, or an assembly.
  const ZipEntry* entry = nullptr;
  Bytes inside;
  Extent extent;
  const Assembly* assembly = nullptr;
  std::string_view problem;  // why its bytes are unavailable; else empty
};

enum class TensorRole : std::uint8_t { kTensor, kParameter, kBuffer };

// A tensor as its checkpoint describes it, checked: `problem` says why its
// bytes cannot be read; if it is empty, offset, shape and stride stay inside
// the storage. Views are valid while the Checkpoint lives.
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
  bool shape_known = true;  // false for a nested tensor
  bool in_part = false;     // its problem affects only some of its elements
  bool is_slice = false;    // a part of what was saved, as slice_tensor() makes
  std::string_view device = "cpu";
  // If not "strided" ("sparse_coo", "nested", "DTensor"), it is described by
  // the tensors and values below it and has no bytes of its own.
  std::string_view layout = "strided";
  std::string_view type;  // of a subclass; empty for torch's own
  std::string_view problem;

  bool has_parts() const { return layout != "strided"; }
  bool readable() const { return storage != kNoIndex && problem.empty(); }
  std::uint64_t elements() const;  // known not to overflow
  std::uint64_t bytes() const;     // of all elements, row-major
};

// What is wrong with a tensor in a storage of `available` bytes: negative sizes
// or strides, products that overflow, elements beyond the end. Empty if
// nothing.
std::string check_bounds(const Tensor& tensor, std::uint64_t available);

// Whether its elements are in row-major order without gaps.
bool is_contiguous(const Tensor& tensor);

}  // namespace postflight
