#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/reader.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/statistics.h"
#include "checkpoint/torch_maker.h"
#include "checkpoint/verification/verification.h"

namespace postflight {
namespace {

// Opens it and touches everything in it, as the commands do.
bool look(const std::filesystem::path& path) {
  const Limits limits{.max_inflated_bytes = 1 << 20,
                      .max_materialised_bytes = 1 << 20};
  const Result<Checkpoint> checkpoint =
      Checkpoint::open(path, {.context = {.limits = limits, .threads = 1}});
  if (!checkpoint)
    return false;
  std::vector<std::uint32_t> tensors;
  for (std::uint32_t i = 0; i < checkpoint->nodes().size(); ++i)
    if (checkpoint->nodes()[i].kind == NodeKind::kTensor)
      tensors.push_back(i);
  EXPECT_TRUE(digest_tensors(*checkpoint, tensors,
                             [](std::uint32_t, const Result<std::string>&) {}));
  verify(*checkpoint);
  return true;
}

struct Case {
  std::string name;
  std::string contents;
};

std::vector<Case> cases() {
  Builder builder;
  const Value root = builder.dict();
  builder.set_item(root, "w", builder.persistent(builder.integer(7)));
  const auto sample = [](std::string_view name) {
    return read_file(fmt::format("{}/{}", TEST_DATA, name));
  };
  return {{"basic.pt", sample("ckpt/basic.pt")},
          {"legacy_list.pt", sample("ckpt/legacy_list.pt")},
          {"plain.safetensors", sample("ckpt/plain.safetensors")},
          {"model.pt2", sample("exported/model.pt2")},
          {"rezipped_deflated.pt", sample("ckpt_more/rezipped_deflated.pt")},
          {"tar", tar_file(root).substr(0, 5000)}};
}

// Each byte would become a node, which takes far more than 64 times as much.
TEST(HostileCheckpoint, RefusesATreeFarLargerThanItsFile) {
  const std::string bytes = "(" + std::string(2'000'000, ']') + "l.";
  const Result<Checkpoint> checkpoint =
      Checkpoint::open(as_bytes(bytes), "bomb.pkl");
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().kind(), ErrorKind::kRefused);
  EXPECT_TRUE(checkpoint.error().message().find(
                  "its tree takes more than the ") != std::string::npos)
      << checkpoint.error().message();
}

TEST(HostileCheckpoint, EveryPrefixEndsCleanly) {
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "prefix";
  for (const Case& one : cases()) {
    write_file(path, one.contents);
    EXPECT_TRUE(look(path)) << one.name;
    const std::size_t step = one.contents.size() > 3000 ? 13 : 3;
    for (std::size_t size = 0; size < one.contents.size(); size += step) {
      write_file(path, std::string_view(one.contents).substr(0, size));
      look(path);
    }
  }
}

TEST(HostileCheckpoint, EveryFlippedByteIsHarmless) {
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "flipped";
  for (const Case& one : cases())
    for (const int mask : {0x01, 0xff}) {
      const std::size_t step = one.contents.size() > 3000 ? 13 : 3;
      for (std::size_t i = 0; i < one.contents.size(); i += step) {
        std::string flipped = one.contents;
        flipped[i] = static_cast<char>(flipped[i] ^ mask);
        write_file(path, flipped);
        look(path);
      }
    }
}

TEST(HostileCheckpoint, RepeatsNoByteWithoutEnd) {
  Builder builder;
  const Value root = builder.dict();
  const Value tensor = make_tensor(
      builder,
      {.count = 1, .shape = {3, std::int64_t{1} << 50}, .stride = {0, 0}});
  builder.set_item(root, "a", tensor);
  builder.set_item(root, "b", tensor);
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "checkpoint_0.pt";
  write_file(path, torch_file(root, {{{"0", std::string(4, '\0')}}}));
  const Checkpoint checkpoint = must(Checkpoint::open(path));
  const std::uint32_t nodes[] = {1, 2};
  std::vector<std::string> errors;
  ASSERT_TRUE(digest_tensors(
      checkpoint, nodes, [&](std::uint32_t, const Result<std::string>& digest) {
        errors.push_back(message_of(digest));
      }));
  const std::string error =
      "its 13510798882111488 bytes repeat far fewer; together, the tensors "
      "exceed what is allowed (max_materialised_bytes)";
  EXPECT_EQ(errors, std::vector<std::string>(2, error));
  EXPECT_EQ(message_of(read_rank(folder.path(), 0)), "a: " + error);
  // What they are like is that of the one that there is.
  const TensorStatistics found =
      must(statistics_of(TensorReader(checkpoint), checkpoint.tensors()[0]));
  EXPECT_EQ(found.elements, 3ULL << 50);
  EXPECT_EQ(found.zero, 3ULL << 50);
  EXPECT_EQ(found.maximum, Extreme(0.0));
}

}  // namespace
}  // namespace postflight
