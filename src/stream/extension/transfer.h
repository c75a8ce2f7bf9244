#pragma once

#include "stream/extension/transform_chain.h"
#include "stream/file_stream.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace postflight {

// The result of encoding or decoding a stream.
struct StreamOutcome {
  bool encoded = true;  // else decoded
  std::vector<std::string> transforms = {};
  std::string input = {};
  std::string output = {};
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::chrono::nanoseconds duration{};
  std::string damage = {};  // empty: none
};

struct TransferOptions {
  bool encode = true;  // else decode
  std::size_t buffer_size = kStreamBuffer;
  // Whether to finish the output, which then has what precedes the damage, if
  // the input is damaged.
  bool finish_damaged = false;
  // Called with the number of bytes read since the last call and with the size
  // of the input, 0 if unknown.
  std::function<void(std::uint64_t bytes, std::uint64_t total)> progress =
      [](std::uint64_t, std::uint64_t) {};
};

// Moves `input` to its end through the chain to `output`, and finishes that. An
// error means that it could not be done; damage of encoded data is part of the
// outcome, which has no names and no duration yet.
Result<StreamOutcome> transfer(const TransformChain& chain, FileSource& input,
                               Sink& output, const TransferOptions& options);

}  // namespace postflight
