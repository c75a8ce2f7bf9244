#pragma once

#include "base/limits.h"
#include "stream/filter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace postflight {

// A stream of blocks, each with a checksum or an authentication tag. The
// layout, numbers little-endian:
//
//   front     a header whose size the seal knows
//   blocks    4 bytes: the size of the contents, with the highest bit set in
//             the last block; the contents; the tag
//
// Each tag covers the contents, the block's index and whether it is the last.
// So blocks that are changed, moved, repeated or missing are detected,
// truncation included, and no unverified byte is output.

// The position of a block in its stream.
struct BlockPlace {
  std::uint64_t index = 0;
  bool last = false;
};

// Computes and verifies the tags of one stream.
class Seal {
 public:
  virtual ~Seal() = default;

  virtual std::size_t front_size() const = 0;
  virtual std::size_t tag_size() const = 0;

  // Begins a stream by writing its front.
  virtual Result<> write_front(std::span<std::byte> front) = 0;
  virtual Result<> read_front(Bytes front) = 0;

  // `plain` and `sealed` have the same size.
  virtual Result<> close(BlockPlace place, Bytes plain,
                         std::span<std::byte> sealed,
                         std::span<std::byte> tag) = 0;
  // Fails if the tag is wrong; the contents of `plain` are then undefined.
  virtual Result<> open(BlockPlace place, Bytes sealed, Bytes tag,
                        std::span<std::byte> plain) = 0;
};

constexpr std::size_t kDefaultBlock = 64 << 10;

std::unique_ptr<Filter> make_sealing_filter(std::unique_ptr<Seal> seal,
                                            std::size_t block_size);
// Refuses blocks larger than Limits::max_stream_block_bytes.
std::unique_ptr<Filter> make_opening_filter(std::unique_ptr<Seal> seal,
                                            const Limits& limits);

}  // namespace postflight
