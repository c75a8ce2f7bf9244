#pragma once

#include <cstdint>
#include <filesystem>

namespace postflight {

// Writes a file as torch.save would: a state dict of `tensors` float tensors of
// `elements` each, named layers.0.weight and so on, in records aligned to 64
// bytes.
void write_torch_sample(const std::filesystem::path& path, int tensors,
                        std::int64_t elements);

// One float tensor of this shape whose storage is transposed.
void write_transposed_sample(const std::filesystem::path& path,
                             std::int64_t rows, std::int64_t columns);

}  // namespace postflight
