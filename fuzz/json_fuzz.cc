#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "json/json_value.h"
#include "pickle/writing/writer.h"

using namespace postflight;

// Reads JSON, complete or truncated, and writes what it read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  for (const bool shared : {false, true}) {
    Builder builder;
    const JsonValue json =
        read_json_value(text, builder, {.share_texts = shared});
    if (!json.root && !json.damage)
      __builtin_trap();
    if (json.root && !write_pickle(*json.root, {.max_bytes = 64 << 20}) &&
        size < (1 << 20))
      __builtin_trap();
  }
  return 0;
}
