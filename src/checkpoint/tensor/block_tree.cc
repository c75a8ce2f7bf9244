#include "checkpoint/tensor/block_tree.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace postflight {
namespace {

constexpr std::byte kLeaf{0};
constexpr std::byte kNode{1};

bool append_bytes(std::string_view digest, std::vector<std::byte>& to) {
  constexpr std::size_t kDigits = 64;
  if (digest.size() != kDigits)
    return false;
  for (std::size_t i = 0; i < kDigits; i += 2) {
    std::uint8_t byte = 0;
    const char* const end = digest.data() + i + 2;
    const auto read = std::from_chars(digest.data() + i, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end)
      return false;
    to.push_back(std::byte{byte});
  }
  return true;
}

}  // namespace

void BlockTree::add(Bytes bytes) {
  while (!bytes.empty()) {
    if (filled_ == 0) {
      sha_ = Sha256();
      sha_.add({&kLeaf, 1});
    }
    const Bytes part =
        bytes.first(std::min<std::uint64_t>(bytes.size(), kBlock - filled_));
    sha_.add(part);
    filled_ += part.size();
    bytes = bytes.subspan(part.size());
    if (filled_ == kBlock)
      finish_block();
  }
}

void BlockTree::finish_block() {
  blocks_.push_back(sha_.digest());
  filled_ = 0;
}

std::vector<std::string> BlockTree::blocks() {
  if (filled_ > 0 || blocks_.empty()) {
    if (filled_ == 0)
      sha_.add({&kLeaf, 1});
    finish_block();
  }
  return std::move(blocks_);
}

std::string BlockTree::root(std::span<const std::string> blocks) {
  std::vector<std::string> level(blocks.begin(), blocks.end());
  while (level.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      std::vector<std::byte> both = {kNode};
      if (!append_bytes(level[i], both) || !append_bytes(level[i + 1], both))
        return {};
      Sha256 sha;
      sha.add(both);
      above.push_back(sha.digest());
    }
    if (level.size() % 2 != 0)
      above.push_back(level.back());
    level = std::move(above);
  }
  return level.empty() ? std::string() : level.front();
}

}  // namespace postflight
