// The reference is torch's experimental CheckpointReader; numbers are those of
// its defects that docs/differences.md lists in the same order.

#include "checkpoint/reader.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/test_files.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string ranks() {
  return fmt::format("{}/ckpt/ranks", TEST_DATA);
}

Template wanted(std::string_view json) {
  return must(parse_template(as_bytes(json)));
}

class CheckpointReaderTest : public testing::Test {
 protected:
  // The outcome of reading `root`, saved with one storage of six floats.
  ReadOutcome read(const Value& root, const Template* wanted = nullptr,
                   const MapLocation& map = {}) {
    save(root);
    return must(
        read_rank(folder_.path(), 0, {.wanted = wanted, .map_location = map}));
  }
  std::string error(const Value& root, const Template& wanted) {
    save(root);
    return message_of(read_rank(folder_.path(), 0, {.wanted = &wanted}));
  }
  void save(const Value& root, bool deflated = false) {
    write_file(folder_.path() / "checkpoint_0.pt",
               torch_file(root, {{{"0", kBytes}}, "little", deflated}));
  }
  static std::vector<float> floats(std::span<const std::byte> bytes) {
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  Value tensor(MadeTensor made = {}) {
    made.count = 6;
    if (made.shape.empty()) {
      made.shape = {6};
      made.stride = {1};
    }
    return make_tensor(builder_, made);
  }
  Value dict(std::initializer_list<std::pair<std::string_view, Value>> items) {
    const Value made = builder_.dict();
    for (const auto& [key, value] : items)
      builder_.set_item(made, key, value);
    return made;
  }

  const std::string kBytes = bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5});
  TemporaryFolder folder_ = scratch_folder();
  Builder builder_;
};

TEST_F(CheckpointReaderTest, ReadsEverythingWithoutATemplate) {
  const ReadOutcome outcome = must(read_rank(ranks(), 1));
  EXPECT_EQ(outcome.tensors.size(), 5U);
  EXPECT_THAT(outcome.missing, IsEmpty());
}

TEST_F(CheckpointReaderTest, SaysWhichFileIsNotThere) {
  EXPECT_EQ(
      message_of(read_rank(ranks(), 9)),
      fmt::format("Checkpoint file not found at {}/checkpoint_9.pt", ranks()));
}

TEST_F(CheckpointReaderTest, NamesMissingAndUnexpectedKeys) {
  const Template some = wanted(
      R"({"model": {"shard": {"$tensor": {"dtype": "float32", "shape": [8, 4]}},
                    "absent": {"$tensor": {"dtype": "float32", "shape": [1]}}},
          "opt": [{"m": {"$tensor": {"dtype": "float32", "shape": [3]}}}],
          "nothere": null})");
  const ReadOutcome outcome = must(read_rank(ranks(), 1, {.wanted = &some}));
  EXPECT_EQ(outcome.tensors.size(), 2U);
  EXPECT_THAT(outcome.missing, ElementsAre("model.absent", "nothere"));
  // Defect 13: opt[1] was not asked for.
  EXPECT_THAT(outcome.unexpected,
              ElementsAre("model.common", "opt[1]", "rank"));
}

TEST_F(CheckpointReaderTest, LogsAsTheReferenceDoes) {
  std::vector<std::string> lines;
  Log log([&lines](LogLevel, std::string_view, std::string_view message) {
    lines.emplace_back(message);
  });
  log.set_level("checkpoint", LogLevel::kDebug);
  std::string json = "{";
  for (int i = 0; i < 12; ++i)
    json += fmt::format("{}\"k{}\": null", i == 0 ? "" : ", ", i);
  const Template some = wanted(json + "}");
  must(read_rank(ranks(), 1, {.wanted = &some}, {.log = &log}));
  EXPECT_THAT(
      lines,
      ElementsAre(
          fmt::format("Reading checkpoint from {} for rank 1", ranks()),
          "Missing 12 keys from checkpoint: ['k0', 'k1', 'k2', 'k3', 'k4', "
          "'k5', 'k6', 'k7', 'k8', 'k9']... (and 2 more)",
          fmt::format("Successfully read checkpoint file from "
                      "{}/checkpoint_1.pt",
                      ranks())));
}

TEST_F(CheckpointReaderTest, Defect1FollowsStrides) {
  const Template some =
      wanted(R"({"t": {"$tensor": {"dtype": "float32", "shape": [3, 2]}}})");
  const ReadOutcome outcome =
      read(dict({{"t", tensor({.shape = {3, 2}, .stride = {1, 3}})}}), &some);
  EXPECT_THAT(floats(outcome.tensors[0].bytes), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(CheckpointReaderTest, Defect2ReadsInsideTuplesSetsAndObjects) {
  const Value object =
      builder_.new_object(builder_.global("job", "Config"), builder_.tuple({}));
  builder_.add_state(object, dict({{"w", tensor()}}));
  const ReadOutcome outcome =
      read(dict({{"t", builder_.tuple({tensor()})}, {"o", object}}));
  ASSERT_EQ(outcome.tensors.size(), 2U);
  EXPECT_EQ(floats(outcome.tensors[0].bytes).size(), 6U);
  EXPECT_EQ(floats(outcome.tensors[1].bytes).size(), 6U);
}

TEST_F(CheckpointReaderTest, Defect3FollowsTheDirectoryOfAnyZip) {
  save(tensor(), /*deflated=*/true);
  const ReadOutcome outcome = must(read_rank(folder_.path(), 0));
  EXPECT_THAT(floats(outcome.tensors[0].bytes), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(CheckpointReaderTest, Defect4ChecksTheCrcOfRecordsReadWhole) {
  std::string file = torch_file(tensor(), {{{"0", kBytes}}});
  const std::size_t at = file.find(kBytes);
  file[at] = 'x';
  write_file(folder_.path() / "checkpoint_0.pt", file);
  const Checkpoint checkpoint =
      must(Checkpoint::open(folder_.path() / "checkpoint_0.pt"));
  std::vector<std::byte> room(24);
  const Tensor& whole = checkpoint.tensors()[0];
  const auto mismatch =
      testing::StartsWith("made/data/0: CRC mismatch: its CRC-32 is");
  const TensorReader reader(checkpoint, {.threads = 1});
  EXPECT_THAT(message_of(reader.read(whole, room)), mismatch);
  const TensorTarget target{&whole, room};
  EXPECT_THAT(message_of(reader.read_all(std::span(&target, 1))), mismatch);
  EXPECT_THAT(
      message_of(reader.stream(whole, 8, [](Bytes) -> Result<> { return {}; })),
      mismatch);
  // Slices only if they are asked for.
  const SliceRange half[] = {{0, 3, 1, false}};
  const TensorSlice slice = slice_tensor(whole, half);
  const std::span<std::byte> half_room = std::span(room).first(12);
  EXPECT_TRUE(reader.read(slice.tensor, half_room));
  EXPECT_THAT(message_of(TensorReader(checkpoint, {.crc = CrcCheck::kAlways})
                             .read(slice.tensor, half_room)),
              mismatch);
  EXPECT_TRUE(
      TensorReader(checkpoint, {.crc = CrcCheck::kNever}).read(whole, room));
}

TEST_F(CheckpointReaderTest, Defect5ReadsTensorsWithoutElements) {
  const ReadOutcome outcome = read(tensor({.shape = {2, 0}, .stride = {1, 1}}));
  ASSERT_EQ(outcome.tensors.size(), 1U);
  EXPECT_THAT(outcome.tensors[0].bytes, IsEmpty());
}

TEST_F(CheckpointReaderTest, Defect6Negates) {
  const ReadOutcome outcome =
      read(tensor({.shape = {2}, .stride = {1}, .neg = true}));
  EXPECT_THAT(floats(outcome.tensors[0].bytes), ElementsAre(-0.0F, -1));
}

TEST_F(CheckpointReaderTest, Defects8And11KeepWhatATensorIs) {
  const Value parameter = builder_.reduce(
      builder_.global("torch._utils", "_rebuild_parameter"),
      builder_.tuple({tensor(), Builder::boolean(true), builder_.dict()}));
  const Template some =
      wanted(R"({"$tensor": {"dtype": "float32", "shape": [6]}})");
  const ReadOutcome outcome = read(parameter, &some);
  const Tensor& read_back = outcome.checkpoint->tensors()[0];
  EXPECT_EQ(read_back.role, TensorRole::kParameter);
  EXPECT_TRUE(read_back.requires_grad);
}

TEST_F(CheckpointReaderTest, Defect9FitsWhatIsAlike) {
  const Value ordered = builder_.reduce(
      builder_.global("collections", "OrderedDict"), builder_.tuple({}));
  builder_.set_item(ordered, "w", tensor());
  const Value root = dict({{"model", ordered},
                           {"lr", builder_.floating(0.5)},
                           {"gone", Builder::none()}});
  const Template some = wanted(
      R"({"model": {"w": {"$tensor": {"dtype": "float32", "shape": [6]}}},
          "lr": {"$value": 1},
          "gone": {"$tensor": {"dtype": "float32", "shape": [1]}}})");
  const ReadOutcome outcome = read(root, &some);
  EXPECT_EQ(outcome.tensors.size(), 1U);
  EXPECT_EQ(outcome.values.size(), 2U);
  EXPECT_THAT(outcome.missing, IsEmpty());
}

TEST_F(CheckpointReaderTest, RefusesOtherTypesInTheReferencesWords) {
  EXPECT_EQ(error(dict({{"a", builder_.integer(1)}}),
                  wanted(R"({"a": {"b": null}})")),
            "Target value a is set to <class 'dict'>, but source value is "
            "<class 'int'>");
  EXPECT_EQ(error(dict({{"a", tensor()}}),
                  wanted(R"({"a": {"$tensor": {"dtype": "int8",
                                               "shape": [2]}}})")),
            "Target tensor size=torch.Size([2]) dtype=torch.int8 does not "
            "match source tensor size=torch.Size([6]) dtype=torch.float32 for "
            "key a");
}

TEST_F(CheckpointReaderTest, Defect10KeepsTiedTensorsTied) {
  const ReadOutcome outcome = read(dict({{"a", tensor()}, {"b", tensor()}}));
  ASSERT_EQ(outcome.tensors.size(), 2U);
  EXPECT_EQ(outcome.tensors[0].bytes.data(), outcome.tensors[1].bytes.data());
}

TEST_F(CheckpointReaderTest, Defect13NamesTheRestOfAList) {
  const Template some = wanted(R"({"l": [null, null, null]})");
  const ReadOutcome outcome =
      read(dict({{"l", builder_.list({tensor()})}}), &some);
  EXPECT_THAT(outcome.missing, ElementsAre("l[1]", "l[2]"));
}

TEST_F(CheckpointReaderTest, Defect14ChangesNothingWhenItRefuses) {
  Template some = wanted(
      R"({"a": {"$tensor": {"dtype": "float32", "shape": [6]}},
          "b": {"$tensor": {"dtype": "float32", "shape": [5]}}})");
  std::vector<std::byte> room(24, std::byte{7});
  some.items[0].second.into = room;
  save(dict({{"a", tensor()}, {"b", tensor()}}));
  EXPECT_FALSE(read_rank(folder_.path(), 0, {.wanted = &some}));
  EXPECT_THAT(room, testing::Each(std::byte{7}));
  some.items.pop_back();
  must(read_rank(folder_.path(), 0, {.wanted = &some}));
  EXPECT_THAT(floats(room), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(CheckpointReaderTest, Defect15ReadsThePartsOfSparseTensors) {
  const Value sparse = builder_.reduce(
      builder_.global("torch._utils", "_rebuild_sparse_tensor"),
      builder_.tuple(
          {builder_.reduce(
               builder_.global("torch.serialization", "_get_layout"),
               builder_.tuple({builder_.string("torch.sparse_coo")})),
           builder_.tuple(
               {tensor(), tensor(), builder_.tuple({builder_.integer(9)})})}));
  const Template some =
      wanted(R"({"$tensor": {"dtype": "float32", "shape": [9]}})");
  const ReadOutcome outcome = read(sparse, &some);
  ASSERT_EQ(outcome.tensors.size(), 3U);
  EXPECT_EQ(outcome.checkpoint->path_of(outcome.tensors[1].node), "indices");
  EXPECT_EQ(floats(outcome.tensors[2].bytes).size(), 6U);
}

TEST_F(CheckpointReaderTest, Defect16TellsKeysApart) {
  const Value root = dict({{"a.b", tensor()}, {"a", dict({{"b", tensor()}})}});
  builder_.set_item(root, builder_.integer(0), tensor());
  const Template some = wanted(R"({"0": null, "a.b": null, "1": null})");
  const ReadOutcome outcome = read(root, &some);
  ASSERT_EQ(outcome.tensors.size(), 2U);
  EXPECT_EQ(outcome.checkpoint->path_of(outcome.tensors[0].node), "[0]");
  EXPECT_EQ(outcome.checkpoint->path_of(outcome.tensors[1].node), "\"a.b\"");
  EXPECT_THAT(outcome.missing, ElementsAre("1"));
}

TEST_F(CheckpointReaderTest, Defect17TakesAFunctionForDevices) {
  const Value root = tensor({.device = "cuda:3"});
  const MapLocation function(
      [](std::string_view device) { return std::string(device) + "!"; });
  EXPECT_EQ(read(root, nullptr, function).tensors[0].device, "cuda:3!");
  EXPECT_EQ(read(root, nullptr, must(MapLocation::parse("cuda:3=cpu")))
                .tensors[0]
                .device,
            "cpu");
  const ReadOutcome meta =
      read(root, nullptr, must(MapLocation::parse("meta")));
  EXPECT_THAT(meta.tensors[0].bytes, IsEmpty());
}

}  // namespace
}  // namespace postflight
