#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/atomic_file.h"
#include "checkpoint/delta/file.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

struct DeltaOptions {
  Existing existing = Existing::kRefuse;
  bool dry_run = false;  // write nothing
  std::function<void(std::uint64_t bytes)> progress = {};
};

// What was, or would be, written.
struct DeltaSummary {
  std::uint64_t tensors = 0;  // of the result
  std::uint64_t bytes = 0;    // of its storages
  std::uint64_t same = 0;     // storages
  std::uint64_t changed = 0;
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::uint64_t file_bytes = 0;
};

// Writes what makes `after` of `before`. Fails with the name of what a pickle
// of torch.save cannot hold.
Result<DeltaSummary> make_delta(const Checkpoint& before,
                                const Checkpoint& after,
                                const std::filesystem::path& target,
                                const DeltaOptions& options = {});

// One delta that does what several do one after the other. Fails, before
// anything is written, if one does not begin where the one before it ends.
Result<DeltaSummary> fold_deltas(std::span<const std::filesystem::path> deltas,
                                 const std::filesystem::path& target,
                                 const Context& context,
                                 const DeltaOptions& options = {});

DeltaSummary summary_of(const Delta& delta);

}  // namespace postflight
