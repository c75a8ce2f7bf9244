#include "report/flight/json.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "flight/job_maker.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

nlohmann::json json_of(const Job& job) {
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    const Matching matching(job);
    const CollectiveTable table = tabulate(matching);
    write_flight_json(matching, table, analyze_classic(matching, table), out);
  }
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  return nlohmann::json::parse(text);
}

TEST(FlightJson, JoinsByNumber) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {{1}, {2, "nccl:broadcast"}})
                      .rank(1, {{1}, {2}})
                      .job();
  const nlohmann::json json = json_of(job);
  EXPECT_EQ(json["schema"], "postflight.fr-trace/1");
  EXPECT_EQ(json["without_dump"], nlohmann::json({2}));
  EXPECT_EQ(json["first_pending"], nlohmann::json::array());
  EXPECT_EQ(json["groups"][0]["ranks"], nlohmann::json({0, 1, 2}));
  const nlohmann::json& second = json["collectives"][1];
  EXPECT_EQ(second["difference"], "operation");
  EXPECT_EQ(second["matches"], nlohmann::json::parse(R"([
              {"entry": 1, "rank": 0, "agrees": true, "done": true},
              {"entry": 3, "rank": 1, "agrees": false, "done": true}])"));
  for (std::size_t i = 0; i < json["entries"].size(); ++i)
    EXPECT_EQ(json["entries"][i]["id"], i);
  EXPECT_EQ(json["entries"][3]["rank"], 1);
  EXPECT_EQ(json["entries"][3]["record_id"], "1");
  EXPECT_EQ(json["entries"][3]["created_ns"], "1000");
  EXPECT_EQ(json["entries"][3]["started_ns"], nullptr);  // not recorded
}

TEST(FlightJson, HasEveryEntryOfRealJobs) {
  for (const std::string name : {"nccl_p2p_ring_coalesced", "gloo_wrapped"}) {
    const std::vector<std::string> paths = {std::string(TEST_DATA) +
                                            "/flight/" + name};
    const Result<Job> job = load_job(paths, {}, {});
    ASSERT_TRUE(job);
    const nlohmann::json json = json_of(*job);
    EXPECT_EQ(json["entries"].size(), job->entry_count());
    for (const nlohmann::json& entry : json["entries"])
      EXPECT_LT(entry["stack_id"], json["stacks"].size());
  }
}

TEST(FlightJson, MarksBytesThatAreNoText) {
  const nlohmann::json json =
      json_of(JobMaker().group("\xff", {0}).rank(0, {{1, "nccl:\xfe"}}).job());
  EXPECT_EQ(json["groups"][0]["name"], "\\xff");
  EXPECT_EQ(json["groups"][0]["name_escaped"], true);
  EXPECT_EQ(json["entries"][0]["operation"], "\\xfe");
}

}  // namespace
}  // namespace postflight
