#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/model/contents.h"

namespace postflight {

// Whether ranks have parts of tensors: DTensors or ShardedTensors.
bool has_sharded_tensors(const Tree& tree);

// Makes one tree of those of several ranks, which are below the root by rank:
// shards become whole tensors, and what is the same on all ranks is there once.
// What differs between ranks stays below its key, by rank. `concatenations` of
// the checkpoint join other tensors.
Result<> join_ranks(CheckpointContents& checkpoint);

}  // namespace postflight
