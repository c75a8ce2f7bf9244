#include "checkpoint/model/stream_copy.h"

#include <algorithm>

#include <emmintrin.h>

namespace postflight {
namespace {

// The share of the cache that one thread can expect.
constexpr std::uint64_t kCache = 8 << 20;
// The hardware does not prefetch across pages, and consecutive pieces are
// mostly adjacent.
constexpr std::size_t kLookAhead = 1024;

void copy_line(const std::byte* from, std::byte* to) {
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const target = reinterpret_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i)
    _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
}

}  // namespace

StreamCopy::StreamCopy(std::uint64_t total) : past_cache_(total >= kCache) {}

StreamCopy::~StreamCopy() {
  if (past_cache_)
    _mm_sfence();
}

void StreamCopy::copy(Bytes from, std::span<std::byte> to) const {
  if (!past_cache_ || from.size() < 4 * kCacheLine) {
    copy_bytes(from, to);
    return;
  }
  const std::size_t into_line =
      reinterpret_cast<std::uintptr_t>(to.data()) % kCacheLine;
  const std::size_t ahead = (kCacheLine - into_line) % kCacheLine;
  copy_bytes(from.first(ahead), to);
  std::size_t at = ahead;
  for (; at + kCacheLine <= from.size(); at += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(from.data() + at) + kLookAhead,
                 _MM_HINT_T0);
    copy_line(from.data() + at, to.data() + at);
  }
  copy_bytes(from.subspan(at), to.subspan(at));
}

}  // namespace postflight
