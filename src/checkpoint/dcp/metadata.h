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

// The metadata of a distributed checkpoint, not checked against the files.
// Views are valid while the pickle's values and the arena live.

// A part of a tensor, and where its item is.
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
  const DcpPlace* place = nullptr;  // if it is not a tensor
  // Keys from the root: strings, and integers for list indexes. Empty if the
  // planner did not record them.
  std::span<const Value> path = {};
};

struct DcpMetadata {
  std::vector<DcpEntry> entries;
  // The names of items in storage_data that belong to no entry.
  std::vector<std::string_view> unclaimed;
};

// Reads the root of a .metadata pickle. If there are several, as ranks write
// without collectives, join_dcp_metadata() joins them.
Result<DcpMetadata> read_dcp_metadata(const Value& root, Arena& arena);

// Entries of the same name become one with all their chunks.
DcpMetadata join_dcp_metadata(std::vector<DcpMetadata> parts, Arena& arena);

}  // namespace postflight
