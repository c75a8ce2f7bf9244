#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "checkpoint/model/dtype.h"
#include "pickle/value.h"

namespace postflight {

// What a pickle says of a storage it refers to.
struct StorageReference {
  Dtype dtype;
  std::string_view key;
  std::string_view device;
  std::uint64_t bytes = 0;
  std::uint64_t view_offset = 0;  // in elements, from the storage's front
  std::optional<std::int64_t> number = {};  // the key, if it is an integer
};

// Returns the storage of a persistent id, or kNoIndex if it is not one.
using StorageResolver =
    std::function<std::uint32_t(const Value& id, StorageReference& reference)>;

// Reads ("storage", class, key, device, count) into an empty reference. False
// if the id is something else. For an unknown class the dtype is unknown and
// there are no bytes.
bool read_storage_id(const Value& id, StorageReference& reference);

// Empty if it is not a tuple.
inline std::span<const Value> tuple_items(const Value& value) {
  return value.is(Kind::kTuple) ? value.items() : std::span<const Value>();
}

}  // namespace postflight
