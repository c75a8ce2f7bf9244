#include "stream/codec/built_in.h"
#include "stream/codec/sealed_blocks.h"

#include <cstring>
#include <string_view>

#include <xxhash.h>

namespace postflight {
namespace {

constexpr std::string_view kChecksumMagic = "PFc1";

// The tag is XXH3 of the contents, seeded with the block's position.
class ChecksumSeal : public Seal {
 public:
  std::size_t front_size() const override { return kChecksumMagic.size(); }
  std::size_t tag_size() const override { return sizeof(XXH64_hash_t); }

  Result<> write_front(std::span<std::byte> front) override {
    copy_bytes(as_bytes(kChecksumMagic), front);
    return {};
  }

  Result<> read_front(Bytes front) override {
    if (as_text(front) != kChecksumMagic)
      return fail(ErrorKind::kCorrupt,
                  "not a checksum stream: it does not begin with \"{}\"",
                  kChecksumMagic);
    return {};
  }

  Result<> close(BlockPlace place, Bytes plain, std::span<std::byte> sealed,
                 std::span<std::byte> tag) override {
    copy_bytes(plain, sealed);
    const XXH64_hash_t hash = hash_of(place, plain);
    std::memcpy(tag.data(), &hash, sizeof(hash));
    return {};
  }

  Result<> open(BlockPlace place, Bytes sealed, Bytes tag,
                std::span<std::byte> plain) override {
    if (load_little_endian<XXH64_hash_t>(tag.data()) != hash_of(place, sealed))
      return fail(ErrorKind::kCorrupt,
                  "checksum mismatch: it was damaged or moved");
    copy_bytes(sealed, plain);
    return {};
  }

 private:
  static XXH64_hash_t hash_of(BlockPlace place, Bytes contents) {
    const std::uint64_t seed = place.index << 1 | (place.last ? 1 : 0);
    return XXH3_64bits_withSeed(contents.data(), contents.size(), seed);
  }
};

}  // namespace

ExtensionType checksum_extension() {
  return {.registry_name = "stream.checksum@postflight",
          .summary = "XXH3 checksums, which locate damage by block",
          .parameters = {{"block", "bytes per block; default 65536"}},
          .from_descriptor = [](const std::string& descriptor,
                                const TransformSettings& settings)
              -> Result<std::unique_ptr<Extension>> {
            const Limits limits = settings.limits;
            const auto block =
                static_cast<std::size_t>(TRY(settings.parameters.integer(
                    "block", kDefaultBlock, 1,
                    static_cast<std::int64_t>(limits.max_stream_block_bytes))));
            return std::make_unique<StreamTransform>(
                descriptor,
                [block] {
                  return make_sealing_filter(std::make_unique<ChecksumSeal>(),
                                             block);
                },
                [limits] {
                  return make_opening_filter(std::make_unique<ChecksumSeal>(),
                                             limits);
                });
          }};
}

}  // namespace postflight
