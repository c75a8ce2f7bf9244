#include "stream/memory_stream.h"
#include "stream/transform_chain.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

using namespace postflight;

namespace {

constexpr std::array<const char*, 5> kTransforms = {
    "stream.zstd/1", "stream.rot13/1", "stream.lz4@postflight/1",
    "stream.checksum@postflight/1", "stream.aead@postflight/1"};
constexpr std::uint64_t kMostOut = 1 << 20;

}  // namespace

// The first byte says through which transform the rest is decoded.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const ExtensionRegistry registry = ExtensionRegistry::with_built_in();
  static const Result<SecretKey> key =
      SecretKey::from_hex(std::string(2 * SecretKey::kSize, '0'));
  if (size == 0)
    return 0;
  const TransformRequest request{kTransforms[data[0] % kTransforms.size()]};
  TransformSettings settings;
  settings.key = &*key;
  settings.limits = {.max_window_bytes = 1 << 20,
                     .max_stream_block_bytes = 1 << 20};
  const Result<TransformChain> chain =
      TransformChain::make(registry, {&request, 1}, settings);
  MemorySource below(std::as_bytes(std::span(data + 1, size - 1)));
  const Result<std::unique_ptr<Source>> source =
      chain->transform_from(below, /*buffer_size=*/100);
  std::byte room[300];
  while ((*source)->tell() < kMostOut) {
    const Result<Taken> taken = (*source)->read(room);
    if (!taken || taken->at_end)
      return 0;
    if (taken->count == 0)
      __builtin_trap();  // memory never makes one wait
  }
  return 0;
}
