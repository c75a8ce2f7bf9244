#pragma once

#include <filesystem>
#include <string_view>

#include "checkpoint/model/contents.h"

namespace postflight {

// Whether rank files are those of DeepSpeed's ZeRO: below the number of each
// rank, optim_states with flat partitions.
bool has_zero_partitions(const Tree& tree);

// Makes one tree of them: model (the parameters in float32, and what else the
// module has), optimizer (for each moment, those of the parameters), and the
// other values. What does not fit together is a finding, and the trees of the
// ranks stay.
Result<> join_zero(CheckpointContents& checkpoint);

// Whether a key of a file of the model is not a value of its own, but becomes
// tensors of the tree.
bool is_part_of_model(std::string_view key);

// The same tree from a universal checkpoint of DeepSpeed, whose folder `zero`
// has a folder for each parameter.
Result<> add_universal(const std::filesystem::path& folder,
                       const SourceContext& context);
bool is_universal(const std::filesystem::path& folder);

}  // namespace postflight
