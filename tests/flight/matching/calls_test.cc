#include "flight/matching/calls.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flight/job_maker.h"

namespace postflight {
namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

struct MadeCall {
  std::string name = "nccl:all_reduce";
  Shapes inputs = {{4}};
  Shapes outputs = {{4}};
  std::string dtype = "Float";
};

// How the calls of ranks 0, 1, ... differ: "sizes of 2", "dtypes of 0,1
// undecided", "sizes of 1 harmless", "" if they agree.
std::string difference_of(const std::vector<MadeCall>& made) {
  Job job = JobMaker().group("0", {0, 1, 2, 3}).job();
  std::vector<Passed> passed;
  const auto sizes = [&](const Shapes& shapes) {
    std::vector<std::int64_t> encoded;
    for (const std::vector<std::int64_t>& shape : shapes) {
      encoded.push_back(static_cast<std::int64_t>(shape.size()));
      encoded.insert(encoded.end(), shape.begin(), shape.end());
    }
    return job.tables.add_sizes(encoded);
  };
  for (int rank = 0; const MadeCall& one : made) {
    Call call;
    call.name = job.tables.add_text(one.name);
    call.inputs = sizes(one.inputs);
    call.outputs = sizes(one.outputs);
    const std::vector<TextId> dtypes = {job.tables.add_text(one.dtype)};
    call.input_dtypes = call.output_dtypes = job.tables.add_dtypes(dtypes);
    passed.push_back({{rank++}, job.tables.add_call(call)});
  }
  const Calls calls(job);
  const std::optional<Disagreement> found =
      calls.compare(passed, passed.size());
  if (!found)
    return "";
  std::string text(difference_name(found->difference));
  text += " of";
  for (const Rank rank : found->suspects)
    text += " " + std::to_string(rank.value);
  if (!found->decided)
    text += " undecided";
  if (!found->blocks)
    text += " harmless";
  return text;
}

TEST(Calls, CountsElementsAndNotShapes) {
  EXPECT_EQ(difference_of({{}, {}, {}}), "");
  EXPECT_EQ(difference_of({{}, {}, {.inputs = {{5}}, .outputs = {{5}}}}),
            "sizes of 2");
  EXPECT_EQ(difference_of({{}, {}, {.inputs = {{2, 2}}, .outputs = {{2, 2}}}}),
            "sizes of 2 harmless");
}

TEST(Calls, OperationsComeBeforeSizes) {
  EXPECT_EQ(
      difference_of({{}, {}, {.name = "nccl:broadcast", .inputs = {{5}}}}),
      "operation of 2");
  EXPECT_EQ(difference_of({{}, {.name = "nccl:broadcast"}}),
            "operation of 0 1 undecided");
}

TEST(Calls, DtypesOfTensorsWithElements) {
  EXPECT_EQ(difference_of({{}, {}, {.dtype = "Half"}}), "dtypes of 2");
  const Shapes none = {{0}};
  EXPECT_EQ(difference_of({{.inputs = none, .outputs = none},
                           {.inputs = none, .outputs = none, .dtype = "Half"}}),
            "");
}

TEST(Calls, AListMayBeGatheredInUnevenParts) {
  const Shapes whole = {{4}, {4}, {5}};
  const std::string name = "nccl:all_gather";
  EXPECT_EQ(
      difference_of(
          {{name, {{4}}, whole}, {name, {{4}}, whole}, {name, {{5}}, whole}}),
      "sizes of 2 harmless");
  EXPECT_EQ(difference_of({{name, {{4}}, whole},
                           {name, {{4}}, whole},
                           {name, {{5}}, {{4}, {4}, {6}}}}),
            "sizes of 2");
}

TEST(Calls, AnAllToAllReceivesWhatIsSent) {
  const std::string name = "nccl:all_to_all";
  EXPECT_EQ(difference_of({{name, {{4}}, {{5}}}, {name, {{5}}, {{4}}}}), "");
  EXPECT_EQ(difference_of({{name, {{4}}, {{4}}}, {name, {{5}}, {{4}}}}),
            "sizes of 1");
  // Equal calls, and still wrong.
  EXPECT_EQ(difference_of({{name, {{5}}, {{4}}}, {name, {{5}}, {{4}}}}),
            "sizes of 0 1 undecided");
}

TEST(Calls, OnlyTheRootOfAScatterHasAllParts) {
  const std::string gloo = "gloo:scatter";
  const std::string nccl = "nccl:scatter";
  // As a list, as one stacked tensor, or with sides swapped.
  EXPECT_EQ(difference_of({{gloo, {{5}, {5}, {5}}, {{5}}},
                           {gloo, {}, {{5}}},
                           {gloo, {}, {{5}}}}),
            "");
  EXPECT_EQ(
      difference_of(
          {{gloo, {{3, 5}}, {{5}}}, {gloo, {}, {{5}}}, {gloo, {}, {{5}}}}),
      "");
  EXPECT_EQ(difference_of(
                {{gloo, {{3, 5}}, {}}, {gloo, {}, {{5}}}, {gloo, {}, {{5}}}}),
            "sizes of 0 harmless");
  EXPECT_EQ(difference_of({{nccl, {{5}}, {{5}, {5}, {5}}},
                           {nccl, {{5}}, {{0}}},
                           {nccl, {{5}}, {{0}}}}),
            "");
  EXPECT_EQ(
      difference_of(
          {{gloo, {{3, 5}}, {{5}}}, {gloo, {}, {{5}}}, {gloo, {}, {{6}}}}),
      "sizes of 2");
  // Two roots.
  EXPECT_EQ(difference_of({{gloo, {{5}, {5}, {5}}, {{5}}},
                           {gloo, {}, {{5}}},
                           {gloo, {{5}, {5}, {5}}, {{5}}}}),
            "sizes of 0 2 undecided");
}

}  // namespace
}  // namespace postflight
