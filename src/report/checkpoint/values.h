#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/model/checkpoint.h"
#include "json/writer.h"

namespace postflight {

// A value as JSON: None, booleans, numbers and strings as they are, anything
// else as {"$repr": what Python prints}.
void write_json_value(const Node& node, JsonWriter& json);

// The tree of a checkpoint with these leaves, and the containers they are in,
// in the shape of a template: dicts are objects, lists, tuples and sets arrays,
// and a tensor is {"$tensor": {"dtype", "shape"}}. Keys that an object cannot
// have, or would confuse, make it {"$items": [[key, value], ...]}; an object of
// a class has its class as "$class".
void write_values_tree(const Checkpoint& checkpoint,
                       std::span<const std::uint32_t> leaves, JsonWriter& json);

// The tree below a container, whole; and as text, a line for each node.
void write_subtree_json(const Checkpoint& checkpoint, std::uint32_t node,
                        JsonWriter& json);
void write_subtree(const Checkpoint& checkpoint, std::uint32_t node,
                   Output& out);

}  // namespace postflight
