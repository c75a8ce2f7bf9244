#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor/reader.h"

namespace postflight {

enum class ExportFormat : std::uint8_t { kNpy, kNpz, kRaw, kSafetensors };

// A tensor, or a slice of one, under the name it gets.
struct NamedTensor {
  std::string name;
  const Tensor* tensor = nullptr;
};

// Writes tensors as one file, piece by piece, whatever their size. kNpy takes
// exactly one. Dtypes that numpy has not (bfloat16) become bytes of the same
// size there ('|V2'); those that safetensors has not are refused.
using ExportSink = std::function<Result<>(Bytes)>;
Result<> export_tensors(const TensorReader& reader, ExportFormat format,
                        std::span<const NamedTensor> tensors,
                        const ExportSink& sink);

}  // namespace postflight
