#include "stream/codec/compression.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Limits limits{.max_inflated_bytes = 1 << 20,
                      .max_window_bytes = 1 << 20};
  const Decompressed decompressed =
      decompress(std::as_bytes(std::span(data, size)), limits);
  if (decompressed.bytes.size() > limits.max_inflated_bytes &&
      decompressed.bytes.size() > size)
    __builtin_trap();
  return 0;
}
