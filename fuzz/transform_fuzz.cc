#include "stream/codec/built_in.h"
#include "stream/extension/transform_chain.h"
#include "stream/memory_stream.h"

#include <algorithm>
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

// Returns a few bytes per read and does not support take_rest().
class SlowSource : public Source {
 public:
  explicit SlowSource(Bytes bytes) : bytes_(bytes) {}

  Result<Taken> read(std::span<std::byte> to) override {
    return bytes_.read(to.first(std::min<std::size_t>(to.size(), 37)));
  }
  std::uint64_t tell() const override { return bytes_.tell(); }

 private:
  MemorySource bytes_;
};

struct Decoded {
  std::string bytes;  // up to kMostOut
  bool failed = false;
};

Decoded read_all(const TransformChain& chain, Source& below,
                 std::size_t piece) {
  const Result<std::unique_ptr<Source>> source =
      chain.transform_from(below, /*buffer_size=*/100);
  std::string all(kMostOut, '\0');
  std::size_t size = 0;
  bool failed = false;
  while (size < kMostOut) {
    const Result<Taken> taken = (*source)->read(
        std::as_writable_bytes(std::span(all))
            .subspan(size, std::min<std::size_t>(piece, kMostOut - size)));
    if (taken && taken->would_block())
      __builtin_trap();  // reading from memory never blocks
    failed = !taken;
    if (failed || taken->at_end)
      break;
    size += taken->count;
  }
  all.resize(size);
  return {all, failed};
}

}  // namespace

// The first byte selects the transform that the rest is decoded with, once in
// place with room for all output and once in pieces. The results must be equal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const ExtensionRegistry registry = built_in_registry();
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
  const Bytes bytes = std::as_bytes(std::span(data + 1, size - 1));
  MemorySource lent(bytes);
  SlowSource slow(bytes);
  const Decoded whole = read_all(*chain, lent, kMostOut);
  const Decoded pieces = read_all(*chain, slow, 300);
  // libzstd accepts some blocks when decoding a frame in one call that it
  // otherwise rejects.
  if (!whole.bytes.starts_with(pieces.bytes) ||
      (!pieces.failed && (whole.failed || whole.bytes != pieces.bytes)))
    __builtin_trap();
  return 0;
}
