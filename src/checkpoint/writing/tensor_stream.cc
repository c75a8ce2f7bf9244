#include "checkpoint/writing/tensor_stream.h"

#include <vector>

#include "checkpoint/tensor/sha256.h"
#include "checkpoint/writing/rounding.h"

namespace postflight {
namespace {

constexpr std::size_t kWrittenPiece = 1 << 20;
constexpr std::uint64_t kWorthAThread = 4 << 20;

}  // namespace

Result<> TensorStream::write(const OutputTensor& output, const ByteSink& sink) {
  Sha256 sha;
  const bool converts = !(output.dtype == output.tensor->dtype);
  const auto produce = [&](const PieceSink& next) {
    std::vector<std::byte> converted;
    return reader_.stream(
        *output.tensor, kWrittenPiece, [&](Bytes piece) -> Result<> {
          if (converts) {
            converted.resize(piece.size() / output.tensor->dtype.size *
                             output.dtype.size);
            convert_elements(output.tensor->dtype, piece, output.dtype,
                             converted);
            piece = converted;
          }
          if (options_.verify)
            sha.add(piece);
          return next(piece);
        });
  };
  const auto consume = [&](Bytes piece) -> Result<> {
    TRY(sink(piece));
    if (options_.progress)
      options_.progress(piece.size());
    return {};
  };
  if (output.tensor->bytes() < kWorthAThread)
    TRY(produce(consume));
  else
    TRY(overlap(produce, consume, room_));
  if (options_.verify)
    digests_[output.node] = sha.digest();
  return {};
}

Result<> TensorStream::write_part(const Tensor& part, const Dtype& dtype,
                                  const ByteSink& sink) {
  std::vector<std::byte> converted;
  return reader_.stream(part, kWrittenPiece, [&](Bytes piece) -> Result<> {
    if (!(dtype == part.dtype)) {
      converted.resize(piece.size() / part.dtype.size * dtype.size);
      convert_elements(part.dtype, piece, dtype, converted);
      piece = converted;
    }
    if (options_.progress)
      options_.progress(piece.size());
    return sink(piece);
  });
}

}  // namespace postflight
