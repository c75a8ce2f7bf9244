#include "stream/compressor.h"

#include "base/test_files.h"

#include <stdexcept>
#include <vector>

#include <zlib.h>
#include <zstd.h>

namespace postflight {
namespace {

std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in(text);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END)
    throw std::runtime_error("deflate");
  return out;
}

}  // namespace

std::string gzipped(std::string_view text) {
  return deflated(text, MAX_WBITS + 16);
}

std::string zlib_compressed(std::string_view text) {
  return deflated(text, MAX_WBITS);
}

std::string zstd_compressed(std::string_view text, bool size_known) {
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, size_known ? 1 : 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const std::size_t size =
      ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0)
    throw std::runtime_error(ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

std::string zstd_skippable(std::string_view text) {
  std::string out = "\x53\x2a\x4d\x18";
  for (int i = 0; i < 4; ++i)
    out += static_cast<char>(text.size() >> (8 * i));
  return out.append(text);
}

std::string test_data(std::string_view name) {
  return read_file(std::filesystem::path(TEST_DATA) / name);
}

}  // namespace postflight
