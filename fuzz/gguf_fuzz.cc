#include "open_in_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  postflight::open_in_memory(data, size);
  return 0;
}
