#include "report/flight/trace_text.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "flight/job_maker.h"

namespace postflight {
namespace {

// A reader would take 2^60 + 1 for 2^60.
TEST(TraceJson, QuotesIntegersThatReadersWouldRound) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 60) + 1;
  const Job job = JobMaker().group("0", {0}).rank(0, {{kLarge}}).job();
  Verdict verdict;
  verdict.sequence = kLarge;
  verdict.ranks.push_back({.rank = {0}, .waiting_for = {}, .entry = 0});
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    write_trace_json(job, verdict, out);
  }
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["verdict"]["sequence"], "1152921504606846977");
  EXPECT_EQ(json["ranks"][0]["last"]["sequence"], "1152921504606846977");
  EXPECT_EQ(json["ranks"][0]["last"]["p2p_sequence"], 0);
  EXPECT_EQ(json["ranks"][0]["last"]["created_ns"], "1000");
}

}  // namespace
}  // namespace postflight
