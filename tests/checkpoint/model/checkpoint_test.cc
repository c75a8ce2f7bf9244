#include "checkpoint/model/checkpoint.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/sources.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/torch/tree_builder.h"
#include "checkpoint/torch_maker.h"
#include "checkpoint/zip_maker.h"

namespace postflight {
namespace {

using testing::ElementsAre;

std::string data_path(std::string_view name) {
  return fmt::format("{}/{}", TEST_DATA, name);
}

class CheckpointTest : public testing::Test {
 protected:
  Checkpoint open(std::string_view contents) {
    write_file(path(), contents);
    return must(Checkpoint::open(path()));
  }
  std::filesystem::path path() const { return folder_.path() / "made.pt"; }
  static std::uint32_t at(const Checkpoint& checkpoint, std::string_view path) {
    for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i)
      if (checkpoint.path_of(i) == path)
        return i;
    throw std::runtime_error(fmt::format("no {}", path));
  }
  template <class T>
  static std::vector<T> values(const Checkpoint& checkpoint,
                               std::string_view path,
                               std::string_view slice = "") {
    const Tensor* tensor =
        checkpoint.tensor_at(checkpoint.nodes()[at(checkpoint, path)]);
    TensorSlice part;
    if (!slice.empty()) {
      part = slice_tensor(*tensor, must(parse_slice(slice, tensor->shape)));
      tensor = &part.tensor;
    }
    std::vector<T> numbers(tensor->bytes() / sizeof(T));
    must_do(TensorReader(checkpoint)
                .read(*tensor, std::as_writable_bytes(std::span(numbers))));
    return numbers;
  }
  static void must_do(const Result<>& result) {
    if (!result)
      throw std::runtime_error(std::string(result.error().message()));
  }

  TemporaryFolder folder_ = scratch_folder();
  Builder builder_;
};

const std::string kSix = bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5});

TEST_F(CheckpointTest, FollowsStrides) {
  const Value root = builder_.dict();
  builder_.set_item(
      root, "t",
      make_tensor(builder_, {.count = 6, .shape = {3, 2}, .stride = {1, 3}}));
  builder_.set_item(
      root, "row",
      make_tensor(
          builder_,
          {.count = 6, .offset = 1, .shape = {2, 2}, .stride = {0, 2}}));
  // Windows that overlap: both dimensions step by one element.
  builder_.set_item(
      root, "windows",
      make_tensor(builder_, {.count = 6, .shape = {5, 2}, .stride = {1, 1}}));
  const Checkpoint checkpoint = open(torch_file(root, {{{"0", kSix}}}));
  EXPECT_THAT(values<float>(checkpoint, "t"), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(values<float>(checkpoint, "row"), ElementsAre(1, 3, 1, 3));
  EXPECT_THAT(values<float>(checkpoint, "windows"),
              ElementsAre(0, 1, 1, 2, 2, 3, 3, 4, 4, 5));
  EXPECT_THAT(values<float>(checkpoint, "t", "[1:, -1]"), ElementsAre(4, 5));
  EXPECT_THAT(values<float>(checkpoint, "t", "[::2]"), ElementsAre(0, 3, 2, 5));
}

TEST_F(CheckpointTest, TurnsBytesAroundByTheDtypeOfTheTensor) {
  const Value root = builder_.dict();
  builder_.set_item(
      root, "f",
      make_tensor(builder_, {.count = 2, .shape = {2}, .stride = {1}}));
  builder_.set_item(root, "u",
                    make_tensor(builder_, {.storage_class = "UntypedStorage",
                                           .key = "1",
                                           .count = 4,
                                           .shape = {2},
                                           .stride = {1},
                                           .dtype = "uint16"}));
  const Checkpoint checkpoint =
      open(torch_file(root, {{{"0", std::string("\x3f\x80\0\0\x40\0\0\0", 8)},
                              {"1", std::string("\x01\x02\x03\x04", 4)}},
                             "big"}));
  EXPECT_THAT(values<float>(checkpoint, "f"), ElementsAre(1, 2));
  EXPECT_THAT(values<std::uint16_t>(checkpoint, "u"),
              ElementsAre(0x0102, 0x0304));
}

TEST_F(CheckpointTest, ConjugatesAndNegates) {
  const Value root =
      make_tensor(builder_, {.storage_class = "ComplexFloatStorage",
                             .count = 1,
                             .shape = {1},
                             .stride = {1},
                             .conj = true,
                             .neg = true});
  const Checkpoint checkpoint =
      open(torch_file(root, {{{"0", bytes_of(std::vector<float>{1, 2})}}}));
  EXPECT_THAT(values<float>(checkpoint, ""), ElementsAre(-1, 2));
}

TEST_F(CheckpointTest, ReadsDeflatedRecordsFromAnyPlace) {
  std::vector<float> numbers(100'000);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i % 1000);
  const Value root = make_tensor(
      builder_, {.count = 100'000, .shape = {100, 1000}, .stride = {1, 100}});
  const Checkpoint checkpoint =
      open(torch_file(root, {{{"0", bytes_of(numbers)}}, "little", true}));
  EXPECT_THAT(values<float>(checkpoint, "", "[1, 2:4]"), ElementsAre(201, 301));
  const std::vector<float> all = values<float>(checkpoint, "");
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(all[i], numbers[i / 1000 + i % 1000 * 100]) << i;
}

TEST_F(CheckpointTest, RefusesTensorsBeyondTheirRecords) {
  const Value root = builder_.dict();
  const std::int64_t huge = std::int64_t{1} << 62;
  builder_.set_item(
      root, "far",
      make_tensor(builder_,
                  {.count = 6, .offset = 1, .shape = {6}, .stride = {1}}));
  builder_.set_item(
      root, "wraps",
      make_tensor(builder_,
                  {.count = 6, .shape = {4, huge}, .stride = {huge, 1}}));
  builder_.set_item(
      root, "negative",
      make_tensor(builder_,
                  {.count = 6, .offset = 5, .shape = {6}, .stride = {-1}}));
  builder_.set_item(
      root, "lost",
      make_tensor(builder_,
                  {.key = "9", .count = 6, .shape = {6}, .stride = {1}}));
  const Checkpoint checkpoint = open(torch_file(root, {{{"0", kSix}}}));
  const auto problem = [&](std::string_view name) {
    return std::string(
        checkpoint.tensor_at(checkpoint.nodes()[at(checkpoint, name)])
            ->problem);
  };
  EXPECT_EQ(problem("far"), "it reaches byte 28, but its storage has 24 bytes");
  EXPECT_EQ(problem("wraps"), "the product of its sizes exceeds 64 bits");
  EXPECT_EQ(problem("negative"), "a size or a stride is negative");
  EXPECT_EQ(problem("lost"), "record made/data/9 is not in the archive");
}

TEST_F(CheckpointTest, ComparesStoragesWithTheirRecords) {
  const Value root =
      make_tensor(builder_, {.count = 7, .shape = {2}, .stride = {1}});
  const Checkpoint checkpoint = open(torch_file(root, {{{"0", kSix}}}));
  ASSERT_EQ(checkpoint.findings().size(), 1U);
  EXPECT_EQ(checkpoint.findings()[0].message,
            "the pickle says that storage '0' has 28 bytes, its record has 24");
}

TEST_F(CheckpointTest, WritesSharedContainersOutUpToALimit) {
  // Each list holds the one before it twice: 2^40 paths in 40 lists.
  Value inner = builder_.list({builder_.integer(1)});
  for (int i = 0; i < 40; ++i)
    inner = builder_.list({inner, inner});
  const Checkpoint checkpoint = open(torch_file(inner, {}));
  EXPECT_LT(checkpoint.nodes().size(), 300'000U);
}

TEST_F(CheckpointTest, KeepsTheLastValueOfAKeyInThePlaceOfTheFirst) {
  for (const int others : {0, 20}) {  // in a row, and found by their hashes
    const Value root = builder_.dict();
    builder_.set_item(root, "a", builder_.integer(1));
    builder_.set_item(root, builder_.integer(0), builder_.integer(2));
    for (int i = 0; i < others; ++i)
      builder_.set_item(root, builder_.string(fmt::format("other {}", i)),
                        builder_.integer(i));
    builder_.set_item(root, "a", builder_.integer(3));
    builder_.set_item(root, builder_.string("0"), builder_.integer(4));
    builder_.set_item(root, builder_.integer(0), builder_.integer(5));
    const Checkpoint checkpoint = open(torch_file(root, {}));
    ASSERT_EQ(checkpoint.nodes().size(), 4U + static_cast<unsigned>(others));
    EXPECT_EQ(checkpoint.nodes()[0].children,
              3U + static_cast<unsigned>(others));
    EXPECT_EQ(checkpoint.path_of(1), "a");
    EXPECT_EQ(checkpoint.nodes()[1].value.integer(), 3);
    EXPECT_EQ(checkpoint.path_of(2), "[0]");
    EXPECT_EQ(checkpoint.nodes()[2].value.integer(), 5);
    EXPECT_EQ(checkpoint.nodes().back().value.integer(), 4);
  }
}

TEST_F(CheckpointTest, TellsOneTensorFromEqualOnes) {
  const Value root = builder_.dict();
  const MadeTensor six{.count = 6, .shape = {6}, .stride = {1}};
  const Value tensor = make_tensor(builder_, six);
  builder_.set_item(root, "one", tensor);
  builder_.set_item(root, "equal", make_tensor(builder_, six));
  builder_.set_item(root, "same", tensor);
  const Checkpoint checkpoint = open(torch_file(root, {{{"0", kSix}}}));
  ASSERT_EQ(checkpoint.nodes().size(), 4U);
  EXPECT_EQ(checkpoint.tensors().size(), 2U);
  EXPECT_EQ(checkpoint.nodes()[3].index, checkpoint.nodes()[1].index);
  EXPECT_NE(checkpoint.nodes()[2].index, checkpoint.nodes()[1].index);
  EXPECT_EQ(checkpoint.storages().size(), 1U);
}

TEST(TreeBuilder, BelievesNoMarkOfAnotherOne) {
  Builder builder;
  const Value root = builder.dict();
  const Value array = builder.reduce(
      builder.global("numpy.core.multiarray", "scalar"),
      builder.tuple({builder.reduce(builder.global("numpy", "dtype"),
                                    builder.tuple({builder.string("u1")})),
                     builder.bytes("x")}));
  builder.set_item(root, "a", array);
  const auto no_storage = [](const Value&, StorageReference&) {
    return kNoIndex;
  };
  for (int i = 0; i < 2; ++i) {
    Tree tree;
    TreeBuilder(tree, no_storage).build(root, 0, {});
    ASSERT_EQ(tree.tensors.size(), 1U);
    EXPECT_EQ(tree.nodes[1].index, 0U);
    EXPECT_EQ(tree.tensors[0].dtype.name, "uint8");
  }
}

TEST_F(CheckpointTest, EndsAtCycles) {
  const Value list = builder_.list(std::span<const Value>());
  builder_.append(list, list);
  const Checkpoint checkpoint = open(torch_file(list, {}));
  ASSERT_EQ(checkpoint.nodes().size(), 2U);
  EXPECT_EQ(checkpoint.nodes()[1].kind, NodeKind::kReference);
  EXPECT_EQ(checkpoint.nodes()[1].index, 0U);
}

TEST_F(CheckpointTest, ReadsTheLegacyStream) {
  const Value root =
      make_tensor(builder_, {.count = 6, .shape = {3, 2}, .stride = {1, 3}});
  const Checkpoint checkpoint = open(legacy_file(root, {{{"0", kSix}}}, {6}));
  EXPECT_EQ(checkpoint.format(), Format::kLegacy);
  EXPECT_THAT(values<float>(checkpoint, ""), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(CheckpointTest, FindsWhatFollowsAnUnknownStorageOfAStream) {
  const Value root = make_tensor(
      builder_, {.key = "used", .count = 6, .shape = {6}, .stride = {1}});
  // Nobody says how large an element of the first is: two bytes fit alone.
  const Checkpoint checkpoint = open(legacy_file(
      root, {{{"other", std::string(6, 'x')}, {"used", kSix}}}, {3, 6}));
  EXPECT_THAT(values<float>(checkpoint, ""), ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_EQ(checkpoint.findings().size(), 1U);
  EXPECT_EQ(checkpoint.findings()[0].message,
            "storage 'other' is not used by any tensor");
  // Any size fits here, so that what follows may lie anywhere.
  const Checkpoint lost = open(legacy_file(
      root, {{{"other", ""}, {"another", ""}, {"used", kSix}}}, {0, 0, 6}));
  EXPECT_EQ(lost.tensors()[0].problem,
            "storage 'used' comes after 'other', whose size is not known, and "
            "cannot be found");
  const Checkpoint twice = open(legacy_file(
      root, {{{"used", std::string(24, 'x')}, {"used", kSix}}}, {6, 6}));
  EXPECT_THAT(values<float>(twice, ""), ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_EQ(twice.findings().size(), 1U);
  EXPECT_EQ(twice.findings()[0].message,
            "storage 'used' appears in the stream more than once; torch takes "
            "the last");
}

TEST_F(CheckpointTest, ListsTheBytesOfStoragesFromAfterOurTime) {
  const Value root = make_tensor(builder_, {.storage_class = "Float3Storage",
                                            .count = 6,
                                            .shape = {3, 2},
                                            .stride = {2, 1}});
  const Checkpoint checkpoint = open(torch_file(root, {{{"0", kSix}}}));
  ASSERT_EQ(checkpoint.tensors().size(), 1U);
  const Tensor& tensor = checkpoint.tensors()[0];
  EXPECT_EQ(tensor.dtype.name, "Float3");
  EXPECT_EQ(tensor.bytes(), 24U);
  EXPECT_EQ(tensor.problem, "");
  EXPECT_TRUE(checkpoint.findings().empty());
}

TEST_F(CheckpointTest, SlicesNoPackedElements) {
  const Value root = make_tensor(builder_, {.storage_class = "QUInt4x2Storage",
                                            .count = 4,
                                            .shape = {4},
                                            .stride = {1}});
  const Checkpoint checkpoint =
      open(torch_file(root, {{{"0", std::string("\x21\x43\0\0", 4)}}}));
  const Tensor& tensor = checkpoint.tensors()[0];
  ASSERT_EQ(tensor.problem, "");
  const auto problem_of = [&tensor](std::string_view slice) {
    const TensorSlice part =
        slice_tensor(tensor, must(parse_slice(slice, tensor.shape)));
    return std::string(part.tensor.problem);
  };
  EXPECT_EQ(problem_of("[:]"), "");
  EXPECT_EQ(problem_of("[2:4]"),
            "its elements are packed, so only the whole tensor can be read");
  EXPECT_EQ(problem_of("[1]"), problem_of("[2:4]"));
}

TEST_F(CheckpointTest, ReadsTheOldestTar) {
  const Value root = builder_.dict();
  builder_.set_item(root, "w", builder_.persistent(builder_.integer(7)));
  const Checkpoint checkpoint = open(tar_file(root));
  EXPECT_EQ(checkpoint.format(), Format::kTar);
  EXPECT_THAT(values<float>(checkpoint, "w"), ElementsAre(1, 2, 4, 5));
}

TEST_F(CheckpointTest, KeepsTheShapeOfElementsOfSixBits) {
  const auto made = [](std::string_view header, std::string_view bytes) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    return file + std::string(header) + std::string(bytes);
  };
  const Checkpoint six = open(made(R"({"a":{"dtype":"F6_E2M3","shape":[2,4],)"
                                   R"("data_offsets":[0,6]}})",
                                   "abcdef"));
  EXPECT_EQ(six.tensors()[0].problem, "");
  EXPECT_THAT(six.tensors()[0].shape, ElementsAre(2, 4));
  EXPECT_EQ(six.tensors()[0].bytes(), 6U);
  const Checkpoint odd =
      open(made(std::string(R"({"__metadata__":5})") + '\0', ""));
  ASSERT_EQ(odd.findings().size(), 2U);
  EXPECT_EQ(odd.findings()[0].message,
            "its header is padded with something other than white space");
  EXPECT_EQ(odd.findings()[1].message,
            "its __metadata__ is not an object of strings");
  const auto message = [&](std::string_view header, std::string_view bytes) {
    const Checkpoint checkpoint = open(made(header, bytes));
    return checkpoint.findings().empty() ? ""
                                         : checkpoint.findings()[0].message;
  };
  EXPECT_EQ(message("{\"__metadata__\":{}}\t\n", ""), "");
  EXPECT_EQ(message(R"({"a":{"dtype":"XYZ","shape":[2],)"
                    R"("data_offsets":[0,2]}})",
                    "ab"),
            "tensor 'a' has the dtype XYZ, which safetensors does not know");
  EXPECT_EQ(message(R"({"a":{"dtype":"F4","shape":[3],)"
                    R"("data_offsets":[0,2]}})",
                    "ab"),
            "tensor 'a' ends inside a byte, which safetensors refuses");
}

TEST_F(CheckpointTest, FindsHolesInSafetensors) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  const Checkpoint checkpoint = open(file + header + std::string(12, '\0'));
  std::vector<std::string> kinds;
  for (const Finding& finding : checkpoint.findings())
    kinds.push_back(finding.kind);
  EXPECT_THAT(kinds, ElementsAre("safetensors_hole", "trailing_bytes"));
}

TEST_F(CheckpointTest, OpensBytesAsItOpensAFile) {
  const std::string contents = read_file(data_path("ckpt/basic.pt"));
  const Checkpoint from_bytes =
      must(Checkpoint::open(as_bytes(contents), "basic.pt"));
  const Checkpoint from_file =
      must(Checkpoint::open(data_path("ckpt/basic.pt")));
  EXPECT_EQ(from_bytes.format(), from_file.format());
  ASSERT_EQ(from_bytes.nodes().size(), from_file.nodes().size());
  for (std::uint32_t i = 0; i < from_file.nodes().size(); ++i) {
    EXPECT_EQ(from_bytes.path_of(i), from_file.path_of(i));
    const Tensor* const tensor = from_file.tensor_at(i);
    if (tensor != nullptr && tensor->readable()) {
      EXPECT_EQ(values<std::byte>(from_bytes, from_bytes.path_of(i)),
                values<std::byte>(from_file, from_file.path_of(i)));
    }
  }
  EXPECT_EQ(message_of(Checkpoint::open(Bytes(), "-")),
            "-: the file is empty; was its writer killed?");
}

TEST_F(CheckpointTest, KeepsWhatItWasOpenedWith) {
  Checkpoint checkpoint = must(Checkpoint::open(
      data_path("ckpt/basic.pt"),
      {.context = {.limits = {.max_nesting = 3}, .threads = 1}}));
  const std::span<const Node> nodes = checkpoint.nodes();
  const Checkpoint moved = std::move(checkpoint);
  EXPECT_EQ(moved.limits().max_nesting, 3U);
  EXPECT_EQ(moved.context().threads, 1U);
  EXPECT_EQ(moved.nodes().data(), nodes.data());
}

TEST(FormatSources, HasARowForEachFormat) {
  std::set<std::string_view> names;
  for (const FormatSource& source : format_sources()) {
    EXPECT_EQ(format_name(source.format), source.name);
    EXPECT_EQ(format_title(source.format), source.title);
    EXPECT_EQ(source.recognises == nullptr, source.add == nullptr);
    EXPECT_TRUE(names.insert(source.name).second) << source.name;
  }
}

TEST_F(CheckpointTest, KeepsShardsInsideTheirFolder) {
  write_file(folder_.path() / "model.safetensors.index.json",
             R"({"weight_map": {"a": "../secret.safetensors"}})");
  EXPECT_EQ(message_of(Checkpoint::open(folder_.path())),
            "the index names ../secret.safetensors, which is outside its "
            "folder");
}

// Written by torch.export.save of torch 2.11.
TEST_F(CheckpointTest, ReadsAnExportedProgram) {
  const Checkpoint program =
      must(Checkpoint::open(data_path("exported/model.pt2")));
  EXPECT_EQ(program.format(), Format::kExported);
  EXPECT_TRUE(program.findings().empty());
  // Its parameter t is the transpose of 0 to 11 in rows of four.
  EXPECT_THAT(values<float>(program, "t"),
              ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_THAT(values<float>(program, "mask", "1"), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(values<std::int64_t>(program, "const"),
              ElementsAre(0, 1, 2, 3, 4));
  const Tensor& bias =
      *program.tensor_at(program.nodes()[at(program, "a.bias")]);
  EXPECT_EQ(bias.role, TensorRole::kParameter);
  EXPECT_TRUE(bias.requires_grad);
}

TEST_F(CheckpointTest, RefusesAnExportedWeightBeyondItsRecord) {
  std::string bytes = read_file(data_path("exported/model.pt2"));
  const std::string sizes = R"("sizes": [{"as_int": 4}, {"as_int": 8}])";
  const std::size_t found = bytes.find(sizes);
  ASSERT_NE(found, bytes.npos);
  bytes[found + sizes.size() - 3] = '9';
  const Checkpoint program = open(bytes);
  const Tensor& weight =
      *program.tensor_at(program.nodes()[at(program, "a.weight")]);
  EXPECT_FALSE(weight.readable());
  EXPECT_EQ(weight.problem,
            "it reaches byte 132, but its storage has 128 bytes");
}

// torch before 2.8 put what torch.save writes into exported programs.
TEST_F(CheckpointTest, ReadsTheArchivesInsideAnOlderExportedProgram) {
  const Value weight =
      make_tensor(builder_, {.count = 6, .shape = {3, 2}, .stride = {1, 3}});
  const Value state = builder_.dict();
  builder_.set_item(state, "layer.weight", weight);
  const Value inputs = builder_.tuple({weight});
  for (const bool deflated : {false, true}) {
    const Checkpoint program = open(make_zip(
        {{.name = "model/version", .contents = "5.1"},
         {.name = "model/serialized_exported_program.json", .contents = "{}"},
         {.name = "model/serialized_state_dict.pt",
          .contents = torch_file(state, {{{"0", kSix}}}),
          .deflated = deflated},
         {.name = "model/serialized_constants.pt",
          .contents = torch_file(builder_.dict(), {})},
         {.name = "model/serialized_example_inputs.pt",
          .contents = torch_file(inputs, {{{"0", kSix}}})}}));
    EXPECT_EQ(program.format(), Format::kExported);
    EXPECT_EQ(program.findings().size(), 0u);
    EXPECT_EQ(program.tensors().size(), 2u);
    EXPECT_THAT(values<float>(program, "layer.weight"),
                ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(
        values<float>(program, "serialized_example_inputs.pt[0]", "[2]"),
        ElementsAre(2, 5));
  }
}

TEST_F(CheckpointTest, ReadsThePickledWeightsOfAnExportedProgram) {
  const std::string saved = torch_file(
      make_tensor(builder_, {.count = 6, .shape = {6}, .stride = {1}}),
      {{{"0", kSix}}});
  const auto config = [](std::string_view name, std::string_view record) {
    return fmt::format(
        R"("{}": {{"path_name": "{}", "use_pickle": true, "tensor_meta": {{)"
        R"("dtype": 7, "sizes": [], "strides": [], "storage_offset": 0}}}})",
        name, record);
  };
  const auto program_with = [&](std::string_view record) {
    return open(
        make_zip({{.name = "model/archive_format", .contents = "pt2"},
                  {.name = "model/data/weights/model_weights_config.json",
                   .contents = fmt::format(R"({{"config": {{{}, {}}}}})",
                                           config("a", "weight_0"),
                                           config("b", "weight_1"))},
                  {.name = "model/data/weights/weight_0", .contents = saved},
                  {.name = "model/data/weights/weight_1",
                   .contents = std::string(record)}}));
  };
  const Checkpoint whole = program_with(saved);
  EXPECT_EQ(whole.tensors().size(), 2u);
  EXPECT_THAT(values<float>(whole, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<float>(whole, "b", "[4:]"), ElementsAre(4, 5));
  // What is no archive is listed as what it is: bytes.
  const Checkpoint odd = program_with("12345");
  EXPECT_THAT(values<float>(odd, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<char>(odd, "data/weights/weight_1"),
              ElementsAre('1', '2', '3', '4', '5'));
}

// An exported program inside an exported program is left alone: it could hold
// itself many times over.
TEST_F(CheckpointTest, OpensNoExportedProgramInsideAnother) {
  const auto around = [](const std::string& contents) {
    return make_zip(
        {{.name = "model/archive_format", .contents = "pt2"},
         {.name = "model/serialized_state_dict.pt", .contents = contents}});
  };
  const std::string inner = torch_file(
      make_tensor(builder_, {.count = 6, .shape = {6}, .stride = {1}}),
      {{{"0", kSix}}});
  const Checkpoint program = open(around(around(inner)));
  ASSERT_EQ(program.tensors().size(), 1u);
  EXPECT_EQ(program.tensors()[0].dtype.name, "uint8");
}

}  // namespace
}  // namespace postflight
