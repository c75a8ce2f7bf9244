#pragma once

#include "base/bytes.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace postflight {

// Output of a filter that did not fit the caller's buffer yet.
class Pending {
 public:
  bool empty() const { return given_ == bytes_.size(); }

  // A buffer for `size` bytes of output; call it only when empty(). shrink()
  // sets how many of them were used.
  std::span<std::byte> room(std::size_t size) {
    bytes_.resize(size);
    given_ = 0;
    return bytes_;
  }
  void shrink(std::size_t size) { bytes_.resize(size); }

  void give(std::span<std::byte>& out) {
    const std::size_t count = std::min(out.size(), bytes_.size() - given_);
    std::copy_n(bytes_.data() + given_, count, out.data());
    given_ += count;
    out = out.subspan(count);
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t given_ = 0;
};

// Moves bytes from the front of `in` to the back of `to`, which then holds at
// most `size`.
inline void gather(Bytes& in, std::vector<std::byte>& to, std::size_t size) {
  const std::size_t count = std::min(in.size(), size - to.size());
  to.insert(to.end(), in.begin(),
            in.begin() + static_cast<std::ptrdiff_t>(count));
  in = in.subspan(count);
}

}  // namespace postflight
