#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "checkpoint/map_location.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/template.h"

namespace postflight {

// A tensor that was read. Tensors that are the same view of the same storage
// have the same bytes.
struct ReadTensor {
  std::uint32_t node = 0;
  std::string device;
  // Row-major, true values; in the template's own memory where it gave some.
  // Empty on the meta device, and for a tensor that consists of its parts.
  std::span<const std::byte> bytes;
};

// What reading gave: the checkpoint with its tree, its tensors' bytes, and the
// keys that were asked for in vain or not asked for.
struct ReadOutcome {
  std::unique_ptr<Checkpoint> checkpoint;
  std::vector<ReadTensor> tensors;
  std::vector<std::uint32_t> values;
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<std::vector<std::byte>> owned;
};

// What torch's reader warns of where keys of a template are missing: how many,
// and the first ten.
std::string missing_warning(std::span<const std::string> missing);

// Reads a rank's file of a folder as torch's experimental CheckpointReader
// does: everything, or what a template asks for. Everything is checked before
// the first byte goes to the template's memory. docs/differences.md says where
// it is better.
class CheckpointReader {
 public:
  explicit CheckpointReader(std::uint32_t rank, const Context& context = {})
      : rank_(rank), context_(context) {}

  Result<ReadOutcome> read(const std::filesystem::path& folder,
                           const Template* wanted = nullptr,
                           const MapLocation& map_location = {}) const;

 private:
  std::uint32_t rank_;
  Context context_;
};

}  // namespace postflight
