#include "stream/codec/compression.h"

#include "stream/compressor.h"

#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

std::string damage_of(const Decompressed& decompressed) {
  return decompressed.damage ? std::string(decompressed.damage->message())
                             : "none";
}

TEST(Compression, IsToldByTheFirstBytes) {
  EXPECT_EQ(sniff_compression(as_bytes(gzipped("text"))), Compression::kGzip);
  EXPECT_EQ(sniff_compression(as_bytes(zstd_compressed("text"))),
            Compression::kZstd);
  EXPECT_EQ(sniff_compression(as_bytes(zstd_skippable("text"))),
            Compression::kZstd);
  EXPECT_EQ(sniff_compression(as_bytes("\x80\x02}.")), Compression::kNone);
  EXPECT_EQ(sniff_compression(as_bytes("\x1f")), Compression::kNone);
  EXPECT_EQ(sniff_compression({}), Compression::kNone);
}

TEST(Decompress, GivesTheSameBytesForEachCompression) {
  const std::string dump = test_data("flight/nccl_long_run/nccl_trace_rank_0");
  ASSERT_GT(dump.size(), 100'000u);
  for (const std::string& file : {dump, gzipped(dump), zstd_compressed(dump)}) {
    const Decompressed decompressed = decompress(as_bytes(file));
    EXPECT_EQ(decompressed.bytes, dump);
    EXPECT_EQ(damage_of(decompressed), "none");
  }
}

TEST(Decompress, KeepsWhatLiesBeforeTheDamage) {
  const std::string dump = test_data("flight/nccl_healthy/nccl_trace_rank_0");
  const std::string file = gzipped(dump);
  const Decompressed cut = decompress(as_bytes(file.substr(0, 500)));
  EXPECT_GT(cut.bytes.size(), 500u);
  EXPECT_TRUE(dump.starts_with(cut.bytes));
  EXPECT_EQ(damage_of(cut),
            fmt::format("the gzip data is truncated after byte 500, decoded to "
                        "{} bytes; the writer was probably killed",
                        cut.bytes.size()));
}

TEST(Decompress, StopsAtTheCapAndNotBefore) {
  const std::string zeros(1 << 20, '\0');
  for (const std::string& file : {gzipped(zeros), zstd_compressed(zeros)}) {
    const Decompressed fits =
        decompress(as_bytes(file), {.max_inflated_bytes = 1 << 20});
    EXPECT_EQ(fits.bytes, zeros);
    EXPECT_EQ(damage_of(fits), "none");
    const Decompressed bomb =
        decompress(as_bytes(file), {.max_inflated_bytes = (1 << 20) - 1});
    EXPECT_EQ(bomb.bytes.size(), (1u << 20) - 1);
    EXPECT_EQ(damage_of(bomb),
              "it decodes to more than the 1048575 bytes allowed");
    EXPECT_EQ(bomb.damage->kind(), ErrorKind::kRefused);
  }
}

}  // namespace
}  // namespace postflight
