#include "checkpoint/model/stream_copy.h"

#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(StreamCopy, CopiesAnyPieceToAnyPlace) {
  std::string from;
  for (int i = 0; i < 2000; ++i)
    from += static_cast<char>(i * 7 + i / 256);
  for (const std::uint64_t total : {std::uint64_t{0}, std::uint64_t{64} << 20})
    for (const std::size_t size :
         {0, 1, 63, 64, 255, 256, 257, 320, 1000, 1500})
      for (const std::size_t at : {0, 1, 8, 63, 64, 100}) {
        alignas(64) char room[1700] = {};
        const Bytes piece = as_bytes(from).subspan(at / 2, size);
        StreamCopy(total).copy(
            piece, std::as_writable_bytes(std::span(room)).subspan(at, size));
        EXPECT_EQ(std::string_view(room + at, size), as_text(piece));
        EXPECT_EQ(std::count(room, room + at, 0), at);
        EXPECT_EQ(room[at + size], 0);
      }
}

}  // namespace
}  // namespace postflight
