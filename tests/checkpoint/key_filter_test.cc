#include "checkpoint/key_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

using testing::ElementsAre;

// {"opt": [{"m": 1}, {"m": 2}], "model": {"a.b": 3, "a": {"b": 4}}}
class KeyFilterTest : public testing::Test {
 protected:
  KeyFilterTest() {
    const Value root = builder_.dict();
    const Value opt = builder_.list();
    for (const int m : {1, 2}) {
      const Value item = builder_.dict();
      builder_.set_item(item, "m", builder_.integer(m));
      builder_.append(opt, item);
    }
    builder_.set_item(root, "opt", opt);
    const Value model = builder_.dict();
    builder_.set_item(model, "a.b", builder_.integer(3));
    const Value a = builder_.dict();
    builder_.set_item(a, "b", builder_.integer(4));
    builder_.set_item(model, "a", a);
    builder_.set_item(root, "model", model);
    file_ = torch_file(root, {});
    checkpoint_.emplace(must(Checkpoint::open(as_bytes(file_), "made.pt")));
  }

  std::vector<std::string> matches(const std::string& glob) const {
    const KeyFilter filter = must(KeyFilter::make({glob}, {}));
    std::vector<std::string> paths;
    for (const std::uint32_t node :
         must(select_nodes(*checkpoint_, filter, NodeKinds::kAll)))
      paths.push_back(checkpoint_->path_of(node));
    return paths;
  }

  Builder builder_;
  std::string file_;
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(KeyFilterTest, TakesABracketAroundDigitsForAnIndex) {
  EXPECT_THAT(matches("opt[0].m"), ElementsAre("opt[0].m"));
  EXPECT_THAT(matches("opt[*].m"), ElementsAre("opt[0].m", "opt[1].m"));
  EXPECT_THAT(matches("opt[?]"), ElementsAre("opt[0]", "opt[1]"));
}

TEST_F(KeyFilterTest, TakesAnyOtherBracketForASet) {
  EXPECT_THAT(matches("[l-n]odel"), ElementsAre("model"));
  EXPECT_THAT(matches("opt[[]1].[a-m]"), ElementsAre("opt[1].m"));
}

TEST_F(KeyFilterTest, FailsIfNothingMatches) {
  const KeyFilter filter = must(KeyFilter::make({"nothing"}, {}));
  EXPECT_EQ(message_of(select_nodes(*checkpoint_, filter)),
            "no key of made.pt matches");
}

TEST_F(KeyFilterTest, FindsOneNodeByEitherSpelling) {
  EXPECT_EQ(checkpoint_->path_of(must(find_node(*checkpoint_, "opt[1].m"))),
            "opt[1].m");
  EXPECT_EQ(
      checkpoint_->path_of(must(find_node(*checkpoint_, "model.\"a.b\""))),
      "model.\"a.b\"");
  EXPECT_EQ(must(find_node(*checkpoint_, "(root)")), 0U);
  EXPECT_EQ(message_of(find_node(*checkpoint_, "model.a.b")),
            "model.a.b is the path of 2 keys: model.\"a.b\", model.a.\"b\"");
  EXPECT_EQ(message_of(find_node(*checkpoint_, "opt.m")),
            "no key is called opt.m; postflight ckpt ls --all shows them");
}

TEST_F(KeyFilterTest, QuotesOnlyPathsThatWouldBePrintedAlike) {
  EXPECT_THAT(matches("model*"), ElementsAre("model", "model.\"a.b\"",
                                             "model.a", "model.a.\"b\""));
  Builder builder;
  const Value root = builder.dict();
  const Value model = builder.dict();
  builder.set_item(model, "a.b", builder.integer(3));
  const Value a = builder.dict();
  builder.set_item(a, "c", builder.integer(4));
  builder.set_item(model, "a", a);
  builder.set_item(model, "d e", builder.integer(5));
  builder.set_item(root, "model", model);
  const std::string file = torch_file(root, {});
  const Checkpoint checkpoint =
      must(Checkpoint::open(as_bytes(file), "made.pt"));
  std::vector<std::string> paths;
  for (std::uint32_t i = 1; i < checkpoint.nodes().size(); ++i)
    paths.push_back(checkpoint.path_of(i));
  EXPECT_THAT(paths, ElementsAre("model", "model.a.b", "model.a", "model.a.c",
                                 "model.\"d e\""));
  const auto found = [&](std::string_view path) {
    return checkpoint.path_of(must(find_node(checkpoint, path)));
  };
  EXPECT_EQ(found("model.\"a.b\""), "model.a.b");
  EXPECT_EQ(found("\"model\".\"a\".c"), "model.a.c");
  EXPECT_EQ(message_of(find_node(checkpoint, "\"model.a\".c")),
            "no key is called \"model.a\".c; postflight ckpt ls --all shows "
            "them");
  EXPECT_EQ(
      message_of(find_node(checkpoint, "model.\"a.b")),
      "no key is called model.\"a.b; postflight ckpt ls --all shows them");
}

TEST_F(KeyFilterTest, TakesQuotesInGlobsHoweverAKeyIsPrinted) {
  EXPECT_THAT(matches("\"opt\"[*].\"m\""), ElementsAre("opt[0].m", "opt[1].m"));
  EXPECT_THAT(matches("\"mod*\".\"a.*\""), ElementsAre("model.\"a.b\""));
  EXPECT_THAT(matches("*.\"b\""), ElementsAre("model.a.\"b\""));
}

}  // namespace
}  // namespace postflight
