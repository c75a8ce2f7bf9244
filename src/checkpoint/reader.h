#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/map_location.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/template.h"
#include "checkpoint/tensor/export.h"
#include "checkpoint/tensor/slice.h"

namespace postflight {

// Which tensors of a checkpoint to read, and which part of each.
struct ReadRequest {
  // What a template asks for, or what the filter selects.
  const Template* wanted = nullptr;
  KeyFilter filter = {};
  // The same elements of each tensor, as parse_slice() reads them; empty: all.
  std::string slice = {};
  MapLocation map_location = {};
  // Leave out tensors that cannot be read instead of failing.
  bool skip_unreadable = false;
};

// A tensor, or the requested part of one. Valid while its checkpoint lives.
struct PlannedTensor {
  std::uint32_t node = 0;
  const Tensor* whole = nullptr;
  std::optional<TensorSlice> slice = {};
  std::string device = {};
  std::span<std::byte> into = {};  // the template's memory, if it gave some

  const Tensor& tensor() const { return slice ? slice->tensor : *whole; }
  // Not if it is described by its parts, or was on the meta device.
  bool has_bytes() const {
    return !whole->has_parts() && whole->storage != kNoIndex;
  }
};

// What a request selects. No tensor has been read yet.
struct ReadPlan {
  std::vector<PlannedTensor> tensors;
  std::vector<std::uint32_t> unreadable;  // and so left out
  // What no file of tensors can hold: values, and containers without items.
  std::vector<std::uint32_t> values;
  Selection selection;  // what a template missed, and what it left out
};

// A tensor that was read. Tensors that are the same view of the same storage
// share their bytes.
struct ReadTensor {
  std::uint32_t node = 0;
  std::string device;
  // Row-major, true values; in the template's own memory where it gave some.
  // Empty on the meta device, and for a tensor that consists of its parts.
  std::span<const std::byte> bytes;
};

struct ReadTensors {
  std::vector<ReadTensor> tensors;
  std::vector<std::vector<std::byte>> owned;  // what the bytes point into
};

// Reads what a request selects from a checkpoint, which outlives it: into
// memory, or as a file of another format.
class CheckpointReader {
 public:
  explicit CheckpointReader(const Checkpoint& checkpoint,
                            const ReadOptions& options = {})
      : checkpoint_(checkpoint), options_(options) {}

  Result<ReadPlan> plan(const ReadRequest& request) const;

  // Everything is checked before the first byte is written to the template's
  // memory.
  Result<ReadTensors> read(const ReadPlan& plan) const;

  // The tensors that have bytes, under their paths without quotes.
  Result<> write(const ReadPlan& plan, ExportFormat format,
                 const ExportSink& sink) const;

 private:
  Result<> slice_tensors(std::string_view slice, ReadPlan& plan) const;
  // Fails if its bytes are not available.
  Result<> check(const PlannedTensor& planned) const;

  const Checkpoint& checkpoint_;
  ReadOptions options_;
};

// What reading a rank's file gave: the checkpoint with its tree, its tensors'
// bytes, and the keys that were requested in vain or not requested.
struct ReadOutcome {
  std::unique_ptr<Checkpoint> checkpoint;
  std::vector<ReadTensor> tensors;
  std::vector<std::uint32_t> values;
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<std::vector<std::byte>> owned;
};

// Reads a rank's file of a folder as torch's experimental CheckpointReader
// does. docs/differences.md lists where it differs.
Result<ReadOutcome> read_rank(const std::filesystem::path& folder,
                              std::uint32_t rank,
                              const ReadRequest& request = {},
                              const Context& context = {});

// The warning of torch's reader if keys of a template are missing: how many,
// and the first ten.
std::string missing_warning(std::span<const std::string> missing);

}  // namespace postflight
