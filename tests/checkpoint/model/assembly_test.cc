#include "checkpoint/model/assembly.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/bytes.h"

namespace postflight {
namespace {

using Numbers = std::vector<std::int64_t>;

// Chunks and assemblies only point to their numbers.
std::span<const std::int64_t> kept(Numbers numbers) {
  static std::deque<Numbers> all;
  return all.emplace_back(std::move(numbers));
}

AssemblyChunk chunk(Numbers offsets, Numbers sizes) {
  AssemblyChunk made;
  made.offsets = kept(std::move(offsets));
  made.sizes = kept(std::move(sizes));
  return made;
}

Assembly assembly(Numbers shape, std::vector<AssemblyChunk> chunks) {
  Assembly made;
  made.name = "w";
  made.dtype = dtype_named("uint8");
  made.shape = kept(std::move(shape));
  static std::deque<std::vector<AssemblyChunk>> all;
  made.chunks = all.emplace_back(std::move(chunks));
  return made;
}

std::string settled(Numbers shape, std::vector<AssemblyChunk> chunks) {
  return assembly(std::move(shape), std::move(chunks)).settle();
}

TEST(Assembly, TakesChunksThatCoverIt) {
  EXPECT_EQ(settled({4, 6}, {chunk({2, 0}, {2, 6}), chunk({0, 0}, {2, 6})}),
            "");
  EXPECT_EQ(settled({}, {chunk({}, {})}), "");
  EXPECT_EQ(settled({0, 3}, {}), "");
  EXPECT_EQ(settled({2}, {chunk({0}, {1}), chunk({1}, {1}), chunk({2}, {0})}),
            "");
}

TEST(Assembly, DropsReplicas) {
  Assembly twice =
      assembly({4}, {chunk({0}, {4}), chunk({0}, {4}), chunk({0}, {4})});
  twice.chunks[0].problem = "lost";
  EXPECT_EQ(twice.settle(), "");
  ASSERT_EQ(twice.chunks.size(), 1u);
  EXPECT_EQ(twice.chunks[0].problem, "");
}

TEST(Assembly, SaysWhatIsWrongWithItsChunks) {
  EXPECT_EQ(settled({4, 6}, {chunk({2, 0}, {3, 6})}),
            "its chunk at (2, 0) of size (3, 6) reaches beyond its shape (4, "
            "6)");
  EXPECT_EQ(
      settled({4}, {chunk({std::int64_t{1} << 62}, {std::int64_t{1} << 62})}),
      "its chunk at (4611686018427387904) of size (4611686018427387904) "
      "reaches beyond its shape (4)");
  EXPECT_EQ(settled({4, 6}, {chunk({0, 0}, {4, 4}), chunk({2, 2}, {2, 4})}),
            "its chunks at (0, 0) of size (4, 4) and at (2, 2) of size (2, 4) "
            "overlap");
  EXPECT_EQ(settled({4, 6}, {chunk({0, 0}, {4, 4})}),
            "its chunks cover 16 of its 24 elements");
  EXPECT_EQ(settled({3}, {}), "its chunks cover 0 of its 3 elements");
}

// Serves a chunk from memory and counts the bytes that were asked for.
class MemoryItem : public AssemblyItem {
 public:
  MemoryItem(std::string bytes, bool lends, std::uint64_t& read)
      : bytes_(std::move(bytes)), lends_(lends), read_(read) {}

  Result<> read_at(std::uint64_t offset, std::span<std::byte> to) override {
    read_ += to.size();
    const Bytes part = TRY(slice(as_bytes(bytes_), offset, to.size()));
    std::ranges::copy(part, to.begin());
    return {};
  }
  std::optional<Bytes> view(std::uint64_t offset,
                            std::uint64_t size) const override {
    const Result<Bytes> part = slice(as_bytes(bytes_), offset, size);
    if (!lends_ || !part)
      return std::nullopt;
    read_ += size;
    return *part;
  }
  std::uint64_t memory() const override { return 0; }

 private:
  std::string bytes_;
  bool lends_;
  std::uint64_t& read_;
};

// The bytes of a box of a tensor whose bytes count up.
std::string box_bytes(std::span<const std::int64_t> shape,
                      const AssemblyChunk& chunk) {
  std::string bytes;
  Numbers at(shape.size(), 0);
  const std::int64_t total =
      std::accumulate(chunk.sizes.begin(), chunk.sizes.end(), std::int64_t{1},
                      std::multiplies<>());
  for (std::int64_t n = 0; n < total; ++n) {
    std::int64_t rest = n;
    std::int64_t place = 0;
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      place += (chunk.offsets[i] + rest % chunk.sizes[i]) * step;
      rest /= chunk.sizes[i];
      step *= shape[i];
    }
    bytes += static_cast<char>(place);
  }
  return bytes;
}

// A tensor cut at random places in each dimension.
RC_GTEST_PROP(AssemblyReader, GivesTheBytesOfTheWholeAndReadsNoMore, ()) {
  const auto shape = *rc::gen::resize(
      3, rc::gen::container<Numbers>(rc::gen::inRange<std::int64_t>(1, 7)));
  std::vector<AssemblyChunk> chunks = {chunk(Numbers(shape.size(), 0), shape)};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t cut = *rc::gen::inRange<std::int64_t>(0, shape[i]);
    std::vector<AssemblyChunk> parts;
    for (const AssemblyChunk& whole : chunks) {
      const Numbers offsets(whole.offsets.begin(), whole.offsets.end());
      Numbers front(whole.sizes.begin(), whole.sizes.end());
      Numbers back = front;
      Numbers behind = offsets;
      front[i] = cut;
      behind[i] = cut;
      back[i] = shape[i] - cut;
      parts.push_back(chunk(behind, back));
      parts.push_back(chunk(offsets, front));
    }
    chunks = parts;
  }
  Assembly whole = assembly(shape, chunks);
  RC_ASSERT(whole.settle() == "");
  std::uint64_t read = 0;
  const bool lends = *rc::gen::arbitrary<bool>();
  AssemblyReader reader(
      whole,
      [&](const Assembly& of,
          const AssemblyChunk& from) -> Result<std::unique_ptr<AssemblyItem>> {
        return std::make_unique<MemoryItem>(box_bytes(of.shape, from), lends,
                                            read);
      });
  const std::string expected =
      box_bytes(shape, chunk(Numbers(shape.size(), 0), shape));
  const auto begin = *rc::gen::inRange<std::size_t>(0, expected.size());
  const auto end =
      *rc::gen::inRange<std::size_t>(begin + 1, expected.size() + 1);
  std::string to(end - begin, '?');
  const Result<> done =
      reader.read_at(begin, std::as_writable_bytes(std::span(to)));
  RC_ASSERT(done.has_value());
  RC_ASSERT(to == expected.substr(begin, end - begin));
}

}  // namespace
}  // namespace postflight
