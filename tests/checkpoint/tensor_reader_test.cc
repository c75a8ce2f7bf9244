#include "checkpoint/tensor_reader.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/test_files.h"
#include "checkpoint/strided_copy.h"
#include "checkpoint/tensor_slice.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

// Every element found by its index alone.
std::vector<std::int32_t> by_definition(const std::vector<std::int32_t>& from,
                                        const Tensor& tensor) {
  std::vector<std::int32_t> out;
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  for (std::uint64_t n = 0; n < tensor.elements(); ++n) {
    std::uint64_t at = tensor.offset;
    for (std::size_t i = 0; i < index.size(); ++i)
      at += static_cast<std::uint64_t>(index[i] * tensor.stride[i]);
    out.push_back(from[at]);
    for (std::size_t i = index.size(); i-- > 0;) {
      if (++index[i] < tensor.shape[i])
        break;
      index[i] = 0;
    }
  }
  return out;
}

class TensorReaderTest : public testing::Test {};

RC_GTEST_FIXTURE_PROP(TensorReaderTest, ReadsAnyViewOfAStorage, ()) {
  constexpr std::int64_t kCount = 20'000;
  std::vector<std::int32_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto dimensions = *rc::gen::inRange<std::size_t>(0, 5);
  MadeTensor made{.storage_class = "IntStorage", .count = kCount};
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto size = *rc::gen::inRange<std::int64_t>(1, 12);
    const auto stride =
        *rc::gen::element<std::int64_t>(0, 1, 1, 2, 7, 12, 60, 144, 400);
    made.shape.push_back(size);
    made.stride.push_back(stride);
    reach += (size - 1) * stride;
  }
  RC_PRE(reach < kCount);
  made.offset = *rc::gen::inRange<std::int64_t>(0, kCount - reach);
  Builder builder;
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "x.pt", torch_file(make_tensor(builder, made),
                                                {{{"0", bytes_of(numbers)}},
                                                 "little",
                                                 *rc::gen::arbitrary<bool>()}));
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path() / "x.pt"));
  const Tensor& tensor = checkpoint.tensors()[0];
  const TensorReader reader(checkpoint, {.threads = 1});
  const std::vector<std::int32_t> expected = by_definition(numbers, tensor);
  std::vector<std::int32_t> found(expected.size());
  RC_ASSERT(reader.read(tensor, std::as_writable_bytes(std::span(found)))
                .has_value());
  RC_ASSERT(found == expected);
  // In pieces it is the same.
  std::string streamed;
  const auto piece = *rc::gen::inRange<std::size_t>(4, 3000);
  RC_ASSERT(reader
                .stream(tensor, piece,
                        [&](Bytes bytes) -> Result<> {
                          streamed += as_text(bytes);
                          return {};
                        })
                .has_value());
  RC_ASSERT(streamed == bytes_of(expected));
}

TEST(StridedCopy, TurnsBoxesOfAnySizeAround) {
  for (const std::size_t size : {1, 2, 4, 8, 16})
    for (const std::uint64_t rows : {1, 3, 8, 33, 70})
      for (const std::uint64_t columns : {1, 5, 8, 32, 65}) {
        std::vector<std::byte> from(rows * columns * size);
        for (std::size_t i = 0; i < from.size(); ++i)
          from[i] = static_cast<std::byte>(i * 31 + i / 251);
        std::vector<std::byte> to(from.size());
        const CopyDimension dimensions[] = {{rows, columns * size, size},
                                            {columns, size, rows * size}};
        copy_strided(from.data(), to.data(), size, dimensions);
        for (std::uint64_t r = 0; r < rows; ++r)
          for (std::uint64_t c = 0; c < columns; ++c)
            ASSERT_TRUE(std::equal(
                from.begin() +
                    static_cast<std::ptrdiff_t>((r * columns + c) * size),
                from.begin() +
                    static_cast<std::ptrdiff_t>((r * columns + c + 1) * size),
                to.begin() +
                    static_cast<std::ptrdiff_t>((c * rows + r) * size)))
                << size << " " << rows << " " << columns;
      }
}

TEST(TensorSlice, ReadsWhatNumpyReads) {
  const std::vector<std::int64_t> shape = {10, 4};
  const auto error = [&](std::string_view text) {
    return message_of(parse_slice(text, shape));
  };
  const auto ranges = must(parse_slice("[-3:, ...]", shape));
  EXPECT_EQ(ranges[0].start, 7U);
  EXPECT_EQ(ranges[0].count, 3U);
  EXPECT_EQ(ranges[1].count, 4U);
  EXPECT_EQ(must(parse_slice("[8:2, 1]", shape))[0].count, 0U);
  EXPECT_EQ(error("[10]"), "index 10 is outside dimension 0, which has 10");
  EXPECT_EQ(error("[::-1]"), "a slice's step must be positive, not -1");
  EXPECT_EQ(error("[0, 0, 0]"),
            "the slice [0, 0, 0] has more dimensions than the tensor, which "
            "has 2");
  EXPECT_EQ(error("[x]"), "'x' in a slice is no number");
}

TEST(TensorReaderMany, ReadsAllOfAFileAtOnce) {
  const Checkpoint checkpoint =
      must(Checkpoint::open(fmt::format("{}/ckpt/many.pt", TEST_DATA)));
  std::vector<std::vector<std::byte>> rooms;
  std::vector<TensorTarget> targets;
  for (const Tensor& tensor : checkpoint.tensors())
    rooms.emplace_back(tensor.bytes());
  for (std::size_t i = 0; i < rooms.size(); ++i)
    targets.push_back({&checkpoint.tensors()[i], rooms[i]});
  const TensorReader reader(checkpoint, {.threads = 2});
  ASSERT_TRUE(reader.read_all(targets));
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const auto view = reader.view(checkpoint.tensors()[i]);
    ASSERT_TRUE(view);
    EXPECT_TRUE(std::ranges::equal(*view, rooms[i])) << i;
  }
}

}  // namespace
}  // namespace postflight
