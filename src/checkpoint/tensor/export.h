#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor/reader.h"

namespace postflight {

enum class ExportFormat : std::uint8_t { kNpy, kNpz, kRaw, kSafetensors };

// "npy", "npz", "raw" or "bin", "safetensors".
std::optional<ExportFormat> export_format_named(std::string_view name);
// By the extension of a file's name.
std::optional<ExportFormat> export_format_of_file(std::string_view file);

// A tensor, or a slice of one, and its name in the file.
struct NamedTensor {
  std::string name;
  const Tensor* tensor = nullptr;
};

// Writes tensors as one file, piece by piece, whatever their size. kNpy takes
// exactly one. Dtypes that numpy lacks (bfloat16) become opaque bytes of the
// same size ('|V2'); those that safetensors lacks are refused.
using ExportSink = std::function<Result<>(Bytes)>;
Result<> export_tensors(const TensorReader& reader, ExportFormat format,
                        std::span<const NamedTensor> tensors,
                        const ExportSink& sink);

}  // namespace postflight
