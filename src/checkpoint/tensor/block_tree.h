#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "checkpoint/tensor/sha256.h"

namespace postflight {

// The digests of a tensor's blocks, from front to back in row-major order, and
// the root of the tree over them. As in RFC 6962, a block's digest is the
// SHA-256 of a zero byte and the block, that of two nodes the SHA-256 of a one
// byte and both digests; a node without a sibling goes up as it is. So a tensor
// has the same root in every format and however it is sharded, and one that is
// damaged says where.
class BlockTree {
 public:
  static constexpr std::uint64_t kBlock = 1 << 20;

  void add(Bytes bytes);
  // Of all blocks, in hexadecimal digits. Once, after the last add().
  std::vector<std::string> blocks();

  // Empty if one of them is not a SHA-256.
  static std::string root(std::span<const std::string> blocks);

 private:
  void finish_block();

  Sha256 sha_;
  std::uint64_t filled_ = 0;  // of the current block
  std::vector<std::string> blocks_;
};

}  // namespace postflight
