#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "checkpoint/writing/output_plan.h"
#include "checkpoint/writing/pipeline.h"

namespace postflight {

// The elements of a checkpoint's tensors as they are written, and their
// digests.
class TensorStream {
 public:
  TensorStream(const Checkpoint& checkpoint, const OutputOptions& options)
      : reader_(checkpoint, options.reading), options_(options) {}

  Result<> write(const OutputTensor& output, const ByteSink& sink);
  // A part of a tensor, of which no digest is kept.
  Result<> write_part(const Tensor& part, const Dtype& dtype,
                      const ByteSink& sink);

  // By node, of what write() wrote.
  const std::map<std::uint32_t, std::string>& digests() const {
    return digests_;
  }

 private:
  TensorReader reader_;
  const OutputOptions& options_;
  std::map<std::uint32_t, std::string> digests_;
  PieceRoom room_;
};

// Each writes the files of one format. `folder` is where they go; the one file
// of a format that has one is `file`.
Result<> write_torch_file(const Checkpoint& checkpoint, const OutputPlan& plan,
                          const std::string& name, TensorStream& stream,
                          const ByteSink& file);
Result<> write_safetensors_file(const Checkpoint& checkpoint,
                                std::span<const WrittenTensor> tensors,
                                TensorStream& stream, const ByteSink& file);
Result<std::vector<OutputFile>> write_shards(
    const Checkpoint& checkpoint, const OutputPlan& plan,
    const std::filesystem::path& folder, TensorStream& stream);
Result<std::vector<OutputFile>> write_distributed(
    const Checkpoint& checkpoint, const OutputPlan& plan,
    const std::filesystem::path& folder, const std::string& name,
    TensorStream& stream);

}  // namespace postflight
