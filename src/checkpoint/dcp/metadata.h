#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "checkpoint/dcp/places.h"
#include "checkpoint/model/dtype.h"
#include "pickle/value.h"

namespace postflight {

// What the metadata of a distributed checkpoint says, as it says it: nothing
// of it is checked against the files. Views are valid while the pickle's values
// and the arena are.

// A part of a tensor, and where its item lies.
struct DcpChunk {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> sizes;
  const DcpPlace* place = nullptr;  // none: the metadata does not say
};

struct DcpEntry {
  std::string_view name;  // flat: "model.layers.0.weight"
  bool is_tensor = false;
  Dtype dtype = {};
  std::span<const std::int64_t> size = {};
  std::span<const DcpChunk> chunks = {};
  const DcpPlace* place = nullptr;  // of what is no tensor
  // Keys from the root: strings, and integers for indexes of lists. Empty where
  // the planner did not say.
  std::span<const Value> path = {};
};

struct DcpMetadata {
  std::vector<DcpEntry> entries;
  // What storage_data has, and no entry asks for: "name" alone.
  std::vector<std::string_view> unclaimed;
};

// Understands the root of a .metadata pickle. Several of them, as each rank
// writes without collectives, are joined by join_dcp_metadata().
Result<DcpMetadata> read_dcp_metadata(const Value& root, Arena& arena);

// Entries of the same name become one with the chunks of all.
DcpMetadata join_dcp_metadata(std::vector<DcpMetadata> parts, Arena& arena);

}  // namespace postflight
