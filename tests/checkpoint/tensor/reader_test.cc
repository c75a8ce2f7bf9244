#include "checkpoint/tensor/reader.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/test_files.h"
#include "base/truncation_guard.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/strided_copy.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

// As in the program: without one, files are not read through their mapping.
const Result<TruncationGuard> kGuard = TruncationGuard::start();

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

// A box of `rows` by `columns` elements of `size` bytes turned around into
// memory that begins `shift` bytes after a line of the cache, and what is
// around it.
void expect_turned(std::size_t size, std::uint64_t rows, std::uint64_t columns,
                   std::size_t shift) {
  SCOPED_TRACE(fmt::format("{} {} {} {}", size, rows, columns, shift));
  std::vector<std::byte> from(rows * columns * size);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(i * 31 + i / 251);
  std::vector<std::byte> room(from.size() + 256, std::byte{0xee});
  const std::size_t begin =
      64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64 + shift;
  std::byte* const to = room.data() + begin;
  const CopyDimension dimensions[] = {{rows, columns * size, size},
                                      {columns, size, rows * size}};
  copy_strided(from.data(), to, size, dimensions);
  std::size_t wrong = 0;
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < columns; ++c)
      wrong += std::memcmp(from.data() + (r * columns + c) * size,
                           to + (c * rows + r) * size, size) != 0;
  EXPECT_EQ(wrong, 0U);
  for (std::size_t i = 0; i < begin; ++i)
    EXPECT_EQ(room[i], std::byte{0xee}) << i;
  for (std::size_t i = begin + from.size(); i < room.size(); ++i)
    EXPECT_EQ(room[i], std::byte{0xee}) << i;
}

TEST(StridedCopy, TurnsBoxesOfAnySizeAround) {
  for (const std::size_t size : {1, 2, 4, 8, 16, 12})
    for (const std::uint64_t rows : {1, 3, 8, 33, 70})
      for (const std::uint64_t columns : {1, 5, 8, 32, 65})
        expect_turned(size, rows, columns, 0);
}

// These are written past the cache, in lines that begin anywhere.
TEST(StridedCopy, TurnsLargeBoxesAround) {
  for (const std::size_t size : {1, 2, 4, 8, 16, 12})
    for (const std::size_t shift : {0, 1, 16, 63})
      for (const std::uint64_t rows : {1, 60, 127, 1024})
        expect_turned(size, rows, (1 << 19) / rows / size + 7, shift);
}

TEST(StridedCopy, TurnsWhatIsNotDense) {
  // [5, 3, 4, 2] to [3, 5, 4, 2] and to [2, 3, 4, 5], of every other element.
  std::vector<std::uint16_t> from(2 * 5 * 3 * 4 * 2);
  std::iota(from.begin(), from.end(), std::uint16_t{0});
  for (const bool whole : {false, true}) {
    const std::uint64_t step = whole ? 2 : 4;
    std::vector<std::uint16_t> to(from.size() / 2, 0xffff);
    const CopyDimension swapped[] = {
        {5, 24 * step, 16}, {3, 8 * step, 80}, {4, 2 * step, 4}, {2, step, 2}};
    copy_strided(reinterpret_cast<const std::byte*>(from.data()),
                 reinterpret_cast<std::byte*>(to.data()), 2, swapped);
    for (std::size_t i = 0; i < to.size(); ++i)
      EXPECT_EQ(to[i], (i / 8 % 5 * 24 + i / 40 * 8 + i % 8) * step / 2) << i;
    const CopyDimension reversed[] = {{5, 24 * step, 2},
                                      {3, 8 * step, 40},
                                      {4, 2 * step, 10},
                                      {2, step, 120}};
    copy_strided(reinterpret_cast<const std::byte*>(from.data()),
                 reinterpret_cast<std::byte*>(to.data()), 2, reversed);
    for (std::size_t i = 0; i < to.size(); ++i)
      EXPECT_EQ(to[i], (i % 5 * 24 + i / 20 % 3 * 8 + i / 5 % 4 * 2 + i / 60) *
                           step / 2)
          << i;
  }
}

// Large enough to be read through the map, in bands of several threads.
TEST(TensorReaderMapped, TurnsLargeTensorsAround) {
  constexpr std::int64_t kCount = 2'500'000;
  std::vector<std::int32_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0);
  const TemporaryFolder folder = scratch_folder();
  const std::vector<MadeTensor> views = {
      {.shape = {1025, 2300}, .stride = {1, 1025}},
      {.offset = 5, .shape = {2, 3, 512, 512}, .stride = {786432, 1, 1536, 3}},
      {.offset = 9, .shape = {640, 2, 1024}, .stride = {1, 0, 1280}},
      {.shape = {1000, 1000}, .stride = {2, 2400}}};
  for (const MadeTensor& view : views) {
    MadeTensor made = view;
    made.storage_class = "IntStorage";
    made.count = kCount;
    Builder builder;
    write_file(folder.path() / "x.pt",
               torch_file(make_tensor(builder, made),
                          {.storages = {{"0", bytes_of(numbers)}}}));
    const Checkpoint checkpoint =
        must(Checkpoint::open(folder.path() / "x.pt"));
    const Tensor& tensor = checkpoint.tensors()[0];
    const std::vector<std::int32_t> expected = by_definition(numbers, tensor);
    for (const std::size_t threads : {1, 3}) {
      std::vector<std::int32_t> found(expected.size());
      const TensorReader reader(checkpoint, {.threads = threads});
      ASSERT_TRUE(
          reader.read(tensor, std::as_writable_bytes(std::span(found))));
      EXPECT_EQ(found == expected, true) << tensor.shape[0] << " " << threads;
    }
  }
}

TEST(DataFile, ShowsNothingThatWasCutOff) {
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "x.pt";
  write_file(path, std::string(1 << 20, 'x'));
  const auto file = must(DataFile::open(path, {}));
  if (!file->mapped_at(100'000, 900'000))
    GTEST_SKIP() << "this kernel cannot tell";
  EXPECT_EQ(as_text(*file->mapped_at(100'000, 3)), "xxx");
  EXPECT_FALSE(file->mapped_at(1 << 20, 1));
  std::filesystem::resize_file(path, 500'000);
  EXPECT_FALSE(file->mapped_at(100'000, 900'000));
  std::vector<std::byte> room(900'000);
  EXPECT_EQ(message_of(file->read_at(100'000, room)),
            fmt::format("{}: it was truncated while it was read, at byte {}",
                        path.string(), 500'000));
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
  EXPECT_EQ(must(parse_slice("[+1,]", shape))[0].start, 1U);
  EXPECT_EQ(error("[..., ...]"), "the slice [..., ...] has two ellipses");
  EXPECT_EQ(error("[+-1]"), "'+-1' in a slice is not a number");
  EXPECT_EQ(error("[::-1]"), "a slice's step must be positive, not -1");
  EXPECT_EQ(error("[0, 0, 0]"),
            "the slice [0, 0, 0] has more dimensions than the tensor, which "
            "has 2");
  EXPECT_EQ(error("[x]"), "'x' in a slice is not a number");
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
