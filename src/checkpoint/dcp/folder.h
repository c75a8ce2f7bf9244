#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/model/contents.h"

namespace postflight {

// Adds a folder of torch.distributed.checkpoint with these metadata files:
// .metadata, or one of each rank.
Result<> add_distributed(const std::filesystem::path& folder,
                         std::span<const std::filesystem::path> metadata,
                         const SourceContext& context);

// Whether these safetensors files hold parts of tensors, as torch's writer for
// Hugging Face leaves them. The first file decides.
bool are_parts(std::span<const std::filesystem::path> files,
               const Limits& limits);
Result<> add_parts(std::span<const std::filesystem::path> files,
                   const SourceContext& context);

}  // namespace postflight
