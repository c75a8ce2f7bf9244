#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/model/checkpoint.h"

namespace postflight {

// What a delta makes of its base: a checkpoint like any other, whose tensors
// are put together when they are read. `expected` are the digests of its
// tensors, by node.
struct AppliedDelta {
  Checkpoint checkpoint;
  std::map<std::uint32_t, std::string> expected;
};

// Fails, by the name of the first tensor that differs, if the base is not the
// one that the delta was made of. All of the base that is needed is read.
Result<AppliedDelta> apply_delta(
    Checkpoint base, const std::filesystem::path& delta,
    const std::function<void(std::uint64_t bytes)>& progress = {});

}  // namespace postflight
