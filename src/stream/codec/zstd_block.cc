#include "stream/codec/zstd_block.h"

#include <memory>

#include <zstd.h>

namespace postflight {
namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

Result<std::vector<std::byte>> compress_block(Bytes bytes, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      context == nullptr
          ? 0
          : ZSTD_compressCCtx(context.get(), frame.data(), frame.size(),
                              bytes.data(), bytes.size(), level);
  if (context == nullptr || ZSTD_isError(size) != 0)
    return fail(ErrorKind::kIo, "zstd could not compress a block");
  frame.resize(size);
  return frame;
}

Result<> decompress_block(Bytes frame, std::span<std::byte> to) {
  const std::size_t size =
      ZSTD_decompress(to.data(), to.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0)
    return fail(ErrorKind::kCorrupt, "a zstd frame is damaged: {}",
                ZSTD_getErrorName(size));
  if (size != to.size())
    return fail(ErrorKind::kCorrupt,
                "a zstd frame has {} bytes, but {} were expected", size,
                to.size());
  return {};
}

}  // namespace postflight
