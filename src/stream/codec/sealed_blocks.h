#pragma once

#include "base/limits.h"
#include "stream/filter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace postflight {

// Streams of blocks that can be told from forged or damaged ones. One is laid
// out so, numbers with their lowest byte first:
//
//   front     of a size that the seal knows
//   blocks    4 bytes: the size of the contents, with the highest bit set in
//             the last block; the contents, as long as that; the tag
//
// Each tag vouches for the contents, the block's place and whether it is the
// last. So blocks that are changed, moved, repeated or missing are noticed, at
// the end too, and nothing is given out that was not vouched for.

// Where a block stands in its stream.
struct BlockPlace {
  std::uint64_t index = 0;
  bool last = false;
};

// Makes and checks the tags of one stream.
class Seal {
 public:
  virtual ~Seal() = default;

  virtual std::size_t front_size() const = 0;
  virtual std::size_t tag_size() const = 0;

  // Begins a stream, whose front it writes.
  virtual Result<> write_front(std::span<std::byte> front) = 0;
  virtual Result<> read_front(Bytes front) = 0;

  // All spans but the tags have the same size.
  virtual Result<> close(BlockPlace place, Bytes plain,
                         std::span<std::byte> sealed,
                         std::span<std::byte> tag) = 0;
  // Fails if the tag is wrong; `plain` then holds nothing of use.
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
