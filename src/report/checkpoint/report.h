#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// What a listing shows, already picked and sorted.
struct ListingOptions {
  std::vector<std::uint32_t> nodes = {};
  bool all = false;  // values too
};

// What tensors come to; those that consist of their parts only count. A few
// bytes can be seen as any number of them, so sums end at the largest number.
struct TensorTotals {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  void add(const Tensor& tensor);
};
TensorTotals totals_of(const Checkpoint& checkpoint,
                       std::span<const std::uint32_t> nodes);

// The first node of each storage, and how many nodes there are.
struct StorageUse {
  std::uint32_t first = kNoIndex;
  std::uint32_t uses = 0;
};
std::vector<StorageUse> storage_uses(const Checkpoint& checkpoint);

// One line a tensor: key, dtype, shape, size and what is special about it.
void write_listing(std::string_view name, const Checkpoint& checkpoint,
                   const ListingOptions& options, const Terminal& terminal,
                   Output& out);
// The same as one line of JSON, schema postflight.ckpt.ls/1.
void write_listing_json(std::string_view name, const Checkpoint& checkpoint,
                        const ListingOptions& options, Output& out);

// Totals by prefix, down to `depth` levels below the root: each prefix once,
// where its first tensor is.
void write_tree(std::string_view name, const Checkpoint& checkpoint,
                const ListingOptions& options, std::size_t depth,
                const Terminal& terminal, Output& out);

// "torch.save archive, 2 tensors, 90 elements, 360 B".
std::string checkpoint_summary(const Checkpoint& checkpoint,
                               std::span<const std::uint32_t> nodes);

// Parts of JSON answers: "path":[..],"key":"..", and "dtype":..,"shape":[..].
void write_path_json(const Checkpoint& checkpoint, std::uint32_t node,
                     Output& out);
void write_type_json(const Tensor& tensor, Output& out);
std::string shape_text(const Tensor& tensor);
// Printed paths are escaped here; the root is (root).
std::string shown_path(const Checkpoint& checkpoint, std::uint32_t node);

// An integer, or its digits in quotes beyond what JSON readers keep exactly.
std::string json_number(std::uint64_t number);

}  // namespace postflight
