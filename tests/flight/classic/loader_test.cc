#include "flight/classic/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flight/classic/guid.h"

namespace postflight {
namespace {

using testing::Eq;
using testing::Optional;

TEST(ClassicLoader, FindsThePrefixAsTorchfrtraceDoes) {
  EXPECT_THAT(common_prefix({"nccl_trace_rank_0", "nccl_trace_rank_12"}),
              Optional(Eq("nccl_trace_rank_")));
  EXPECT_THAT(common_prefix({"trace.rank0", "trace.rank1", "truth.json"}),
              Optional(Eq("rank")));
  EXPECT_THAT(common_prefix({"0", "1"}), Optional(Eq("")));
  EXPECT_EQ(common_prefix({"x_0.json"}), std::nullopt);
  EXPECT_EQ(common_prefix({"a_0", "b_1"}), std::nullopt);
  EXPECT_EQ(common_prefix({"rank_0", "core.123"}), std::nullopt);
  EXPECT_EQ(common_prefix({}), std::nullopt);
}

TEST(ClassicLoader, ReadsOnlyFilesWithThePrefix) {
  const Result<ClassicInput> input = load_classic(
      std::string(TEST_DATA) + "/flight/nccl_missing_rank", {}, {});
  ASSERT_TRUE(input);
  EXPECT_EQ(input->files, 4u);
  EXPECT_EQ(input->inferred_prefix, "nccl_trace_rank_");
  EXPECT_TRUE(input->job.skipped.empty());
}

TEST(ClassicGuid, HashesAsPythonDoes) {
  const auto guid = [](std::vector<Rank> members) {
    return classic_guid("g", members);
  };
  // CPython 3.11: hash(frozenset([...]))
  EXPECT_EQ(guid({{0}, {1}, {2}, {3}}), "g7327027465595056883");
  EXPECT_EQ(guid({{0}, {1}}), "g9000494312501845833");
  EXPECT_EQ(guid({{0}, {2}}), "g-3804352684191256534");
  EXPECT_EQ(guid({{5}}), "g-5039393493211280168");
}

}  // namespace
}  // namespace postflight
