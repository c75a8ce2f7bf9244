#include "checkpoint/dcp/places.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pickle/builder.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tensors of one dimension in chunks, each of whose items lies at an offset
// that tells it apart.
class DcpPlacesTest : public ::testing::Test {
 protected:
  struct Item {
    std::size_t tensor;
    std::size_t chunk;
  };

  static std::string name_of(std::size_t tensor) {
    return fmt::format("t{}", tensor);
  }
  static std::int64_t place_of(const Item& item) {
    return static_cast<std::int64_t>(item.tensor * 100 + item.chunk);
  }

  Value attributes(std::string_view name, std::span<const Pair> pairs) {
    const Value made =
        builder_.new_object(builder_.global("m", name), builder_.tuple({}));
    builder_.add_state(made, builder_.dict(pairs));
    return made;
  }

  void add(std::string_view name, Value offset, std::int64_t place) {
    const Pair index[] = {{builder_.interned("fqn"), builder_.string(name)},
                          {builder_.interned("offset"), offset}};
    const Pair info[] = {
        {builder_.interned("relative_path"), builder_.interned("__0_0.distcp")},
        {builder_.interned("offset"), Value::small(place)},
        {builder_.interned("length"), Value::small(10)}};
    storage_data_.push_back(
        {attributes("MetadataIndex", index), attributes("_StorageInfo", info)});
  }

  void add(const Item& item) {
    add(name_of(item.tensor),
        builder_.tuple({Value::small(static_cast<std::int64_t>(item.chunk))}),
        place_of(item));
  }

  // What all chunks of `tensors` find, in the order of the tensors.
  void expect_all_found(std::size_t tensors, std::size_t chunks) {
    DcpPlaces places(arena_);
    ASSERT_TRUE(places.read(storage_data_));
    std::vector<const DcpPlace*> found(tensors * chunks);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tensors; ++i)
      names.push_back(name_of(i));
    std::vector<std::int64_t> offsets(chunks);
    for (std::size_t i = 0; i < chunks; ++i)
      offsets[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < tensors; ++i)
      for (std::size_t j = 0; j < chunks; ++j) {
        const DcpNumbers offset(&offsets[j], 1);
        places.claim(names[i], &offset, j, &found[i * chunks + j]);
      }
    places.claim_rest();
    EXPECT_THAT(places.unclaimed(), IsEmpty());
    for (std::size_t i = 0; i < tensors; ++i)
      for (std::size_t j = 0; j < chunks; ++j) {
        const DcpPlace* const place = found[i * chunks + j];
        ASSERT_NE(place, nullptr) << i << " " << j;
        EXPECT_EQ(static_cast<std::int64_t>(place->offset), place_of({i, j}));
      }
  }

  Builder builder_;
  Arena arena_;
  std::vector<Pair> storage_data_;
};

TEST_F(DcpPlacesTest, FindsItemsInTheOrderOfTheTensors) {
  for (std::size_t i = 0; i < 50; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      add({i, j});
  expect_all_found(50, 4);
}

TEST_F(DcpPlacesTest, FindsItemsRankByRank) {
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 50; ++i)
      add({i, j});
  expect_all_found(50, 4);
}

// More than order is counted on for.
TEST_F(DcpPlacesTest, FindsItemsInNoOrder) {
  constexpr std::size_t kTensors = 3001;  // a prime
  for (std::size_t i = 0; i < kTensors; ++i)
    add({i * 1000 % kTensors, 0});
  expect_all_found(kTensors, 1);
}

TEST_F(DcpPlacesTest, FindsWhatHasNoOffset) {
  add("bytes", Value::none(), 1);
  add("whole", Value::none(), 2);
  add("part", Value::none(), 3);
  add("nobody", Value::none(), 4);
  DcpPlaces places(arena_);
  ASSERT_TRUE(places.read(storage_data_));
  const DcpPlace* found[4] = {};
  const std::int64_t numbers[] = {0, 0, 7};
  const DcpNumbers front(numbers, 2);
  const DcpNumbers behind(numbers + 1, 2);
  places.claim("whole", &front, 0, &found[0]);
  places.claim("bytes", nullptr, 0, &found[1]);
  places.claim("part", &behind, 0, &found[2]);  // it is not in one piece
  places.claim("missing", nullptr, 0, &found[3]);
  places.claim_rest();
  ASSERT_NE(found[0], nullptr);
  EXPECT_EQ(found[0]->offset, 2u);
  ASSERT_NE(found[1], nullptr);
  EXPECT_EQ(found[1]->offset, 1u);
  EXPECT_EQ(found[2], nullptr);
  EXPECT_EQ(found[3], nullptr);
  EXPECT_THAT(places.unclaimed(), ElementsAre("part", "nobody"));
}

TEST_F(DcpPlacesTest, SaysWhatIsWrongWithAnItem) {
  storage_data_.push_back({Value::small(1), Value::none()});
  DcpPlaces nameless(arena_);
  EXPECT_EQ(nameless.read(storage_data_).error().message(),
            "the metadata has an item in its storage_data without a name");
  storage_data_.clear();
  add("t", Value::none(), -1);
  DcpPlaces places(arena_);
  EXPECT_EQ(places.read(storage_data_).error().message(),
            "the metadata does not say where 't' is");
}

}  // namespace
}  // namespace postflight
