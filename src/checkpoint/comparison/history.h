#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/finding.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// A checkpoint of a run: a file or folder with a step in its name.
struct RunStep {
  std::int64_t step = 0;
  std::filesystem::path path;  // what to open
  std::uint64_t bytes = 0;     // of its files
  std::int64_t written = 0;    // the newest of them, in seconds since 1970
};

// The steps of a run's folder, by step: checkpoint-500, step_100.pt,
// iter_0000100, global_step1000, epoch=3-step=400.ckpt. Of several numbers the
// one after "step" or "iter" counts, otherwise the last.
Result<std::vector<RunStep>> list_run(const std::filesystem::path& folder);

// What Megatron and DeepSpeed say is the newest, if they say it:
// latest_checkpointed_iteration.txt and latest.
std::optional<std::string> stated_latest(const std::filesystem::path& folder);

// Whether a step can be resumed from, by its structure and sizes; with `deep`,
// by every CRC and element, too.
struct StepState {
  bool whole = false;
  std::string problem = {};  // the first, if not whole
  std::uint64_t tensors = 0;
};
StepState state_of(const RunStep& step, const Context& context, bool deep);

}  // namespace postflight
