#include "joblog/line.h"

#include "joblog/line_reader.h"
#include "joblog/names.h"
#include "stream/memory_stream.h"

#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

// "2026-11-15 13:05:06.5", without the year if there is none.
std::string shown(const std::optional<LogTime>& time) {
  if (!time)
    return "none";
  const std::int64_t second = time->nanoseconds / 1'000'000'000;
  const std::int64_t rest = time->nanoseconds % 1'000'000'000;
  const std::chrono::sys_days day(std::chrono::days(second / 86'400));
  const std::chrono::year_month_day date(day);
  return fmt::format(
      "{}{:02}-{:02} {:02}:{:02}:{:02}.{:09}",
      time->has_year ? fmt::format("{}-", static_cast<int>(date.year())) : "",
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      second / 3600 % 24, second / 60 % 60, second % 60, rest);
}

std::string time_of(std::string_view text) {
  const std::optional<LogTime> time = take_log_time(text);
  return shown(time) + " | " + std::string(text);
}

TEST(LogTime, KnowsManyForms) {
  EXPECT_EQ(time_of("2026-11-15 13:05:06,123 x"),
            "2026-11-15 13:05:06.123000000 | x");
  EXPECT_EQ(time_of("[2026-11-15 13:05:06,123] [INFO] x"),
            "2026-11-15 13:05:06.123000000 | [INFO] x");
  EXPECT_EQ(time_of("2026-11-15T13:05:06.123456+02:00 x"),
            "2026-11-15 13:05:06.123456000 | x");
  EXPECT_EQ(time_of("2026/11/15 13:05:06 x"),
            "2026-11-15 13:05:06.000000000 | x");
  EXPECT_EQ(time_of("2026-11-15_13:05:06"), "2026-11-15 13:05:06.000000000 | ");
  EXPECT_EQ(time_of("Nov  5 13:05:06 x"), "11-05 13:05:06.000000000 | x");
  EXPECT_EQ(time_of("[Sun Nov 15 13:05:06 2026] x"),
            "2026-11-15 13:05:06.000000000 | x");
  EXPECT_EQ(time_of("E321 02:07:08.408271257 x"),
            "03-21 02:07:08.408271257 | x");
  EXPECT_EQ(time_of("[E1206 18:44:12.7 a.cpp:607] x"),
            "12-06 18:44:12.700000000 | a.cpp:607] x");
  EXPECT_EQ(time_of("W0229 00:00:00.000000 x"), "02-29 00:00:00.000000000 | x");
}

TEST(LogTime, LeavesTheRestAlone) {
  for (const std::string_view text :
       {"", "[", "2026", "2026-13-15 13:05:06", "2026-11-15 25:05:06 ",
        "Epoch 0:   6%|##   ", "[1843.308145] NVRM: Xid", "E9999 02:07:08.4 x",
        "0000-11-15 13:05:06", "Mon 5 13:05:06 "})
    EXPECT_EQ(time_of(text), "none | " + std::string(text));
}

TEST(LogTime, FindsTheYear) {
  const auto time = [](std::string_view text) { return *take_log_time(text); };
  const LogTime december = time("2026-12-31 23:00:00");
  EXPECT_EQ(shown(with_year(time("Jan  1 01:00:00"), december)),
            "2027-01-01 01:00:00.000000000");
  EXPECT_EQ(shown(with_year(time("Dec  1 01:00:00"), december)),
            "2026-12-01 01:00:00.000000000");
  EXPECT_EQ(
      shown(with_year(time("Dec 31 01:00:00"), time("2027-01-01 01:00:00"))),
      "2026-12-31 01:00:00.000000000");
  EXPECT_EQ(with_year(december, time("1999-01-01 00:00:00")), december);
}

std::string line_of(std::string_view text) {
  const LogLine line = read_log_line(text);
  std::string shown;
  if (line.rank)
    shown += fmt::format("rank {} ", line.rank->value);
  if (line.label && line.label != line.rank)
    shown += fmt::format("label {} ", line.label->value);
  if (line.local_rank)
    shown += fmt::format("local {} ", line.local_rank->value);
  if (!line.host.empty())
    shown += fmt::format("on {} ", line.host);
  if (line.time)
    shown += "timed ";
  return shown + "| " + std::string(line.text);
}

TEST(LogLine, KnowsTheRankInManyForms) {
  EXPECT_EQ(line_of("[rank3]:   File \"x\""), "rank 3 |   File \"x\"");
  EXPECT_EQ(line_of("[rank3]:[E321 02:07:08.4 a.cpp:1] x"),
            "rank 3 timed | a.cpp:1] x");
  EXPECT_EQ(line_of("[default3]:x"), "local 3 | x");
  EXPECT_EQ(line_of("[default1]:[rank5]: x"), "rank 5 local 1 | x");
  EXPECT_EQ(line_of(" 3: x"), "rank 3 | x");
  EXPECT_EQ(line_of("12:"), "rank 12 | ");
  EXPECT_EQ(line_of("0: [rank5]: x"), "rank 5 label 0 | x");
  EXPECT_EQ(line_of("[1,3]<stderr>:x"), "rank 3 | x");
  EXPECT_EQ(line_of("[prterun-n-77@1,5]<stdout>: x"), "rank 5 | x");
  EXPECT_EQ(line_of("\x1b[36m(W pid=7, ip=10.0.0.1)\x1b[0m [rank3]: x"),
            "rank 3 on 10.0.0.1 | x");
  EXPECT_EQ(line_of("node-1: [rank3]: x"), "rank 3 on node-1 | x");
  EXPECT_EQ(line_of("2026-11-15 13:05:06 [rank3]: x"), "rank 3 timed | x");
}

TEST(LogLine, KnowsTheHostInSyslog) {
  EXPECT_EQ(line_of("Nov 15 13:05:06 n1 kernel: NVRM: x"),
            "on n1 timed | NVRM: x");
  EXPECT_EQ(line_of("2026-11-15T13:05:06.1+00:00 n1 python[7]: x"),
            "on n1 timed | x");
  EXPECT_EQ(line_of("2026-11-15 13:05:06 ERROR train: x"),
            "timed | ERROR train: x");
}

TEST(LogLine, LeavesOtherLinesAlone) {
  for (const std::string_view text :
       {"", "x", "[rank]: x", "[rank99999999999]: x", "rank3: x", "3:x",
        "12345678: x", "[1,3] x", "(x) y", "RuntimeError: [rank", "    4 x"})
    EXPECT_EQ(line_of(text), "| " + std::string(text));
}

TEST(LogLine, TellsProcessesApart) {
  const auto process = [](std::string_view text) {
    return read_log_line(text).process;
  };
  EXPECT_EQ(process("[rank3]: x"), process("[rank3]:[E321 02:07:08.4 a] y"));
  EXPECT_NE(process("[rank3]: x"), process("[rank4]: x"));
  EXPECT_NE(process("[default3]: x"), process("[rank3]: x"));
  EXPECT_NE(process("0: [default3]:x"), process("1: [default3]:x"));
  EXPECT_NE(process("(W pid=7) x"), process("(W pid=8) x"));
}

// A source that gives out its bytes a few at a time.
class Dripping : public Source {
 public:
  Dripping(std::string_view text, std::size_t size)
      : source_(as_bytes(text)), size_(size) {}
  Result<Taken> read(std::span<std::byte> to) override {
    return source_.read(to.first(std::min(size_, to.size())));
  }
  std::uint64_t tell() const override { return source_.tell(); }

 private:
  MemorySource source_;
  std::size_t size_;
};

std::vector<std::string> lines_of(std::string_view text, std::size_t size,
                                  std::size_t max_line = 100) {
  Dripping source(text, size);
  LineReader reader(source, max_line);
  std::vector<std::string> lines;
  for (;;) {
    const Result<bool> more = reader.next();
    EXPECT_TRUE(more);
    if (!more || !*more)
      return lines;
    lines.push_back(fmt::format("{} {}", reader.number(), reader.line()));
  }
}

TEST(LineReader, ReadsTheSameHoweverTheBytesCome) {
  const std::string text = "ab\n\n\rcde\r\nf\rg\rhijk\n" + std::string(20, 'x');
  for (std::size_t size = 1; size < 45; ++size)
    EXPECT_THAT(
        lines_of(text, size, 9),
        ElementsAre("1 ab", "3 cde", "4 f", "4 g", "4 hijk", "5 xxxxxxxxx"));
  EXPECT_THAT(lines_of("", 1), ElementsAre());
  EXPECT_THAT(lines_of("\n\n", 1), ElementsAre());
}

TEST(LogNames, TellRanksFromOtherNumbers) {
  const auto shown = [](const std::vector<std::string>& files) {
    std::string text;
    for (const LogName& name : read_log_names(files)) {
      text += text.empty() ? "" : " ";
      text += name.rank ? fmt::format("{}", name.rank->value) : "-";
      text += name.local_rank ? fmt::format("/{}", name.local_rank->value) : "";
      text += name.host.empty() ? "" : "@" + name.host;
    }
    return text;
  };
  EXPECT_EQ(shown({"x/rank3.log"}), "3");
  EXPECT_EQ(shown({"x/local_rank3.log"}), "-/3");
  EXPECT_EQ(shown({"x/3.log"}), "-");
  EXPECT_EQ(shown({"x/3.log", "x/4.log"}), "3 4");
  EXPECT_EQ(shown({"a/3.log", "b/3.log"}), "- -");
  EXPECT_EQ(shown({"3.log", "readme"}), "- -");
  EXPECT_EQ(shown({"slurm-3.out", "slurm-4.out"}), "- -");
  EXPECT_EQ(shown({"1234567.out", "1234568.out"}), "- -");
  EXPECT_EQ(shown({"attempt_0/3/stderr.log", "attempt_0/4/stderr.log"}),
            "-/3 -/4");
  EXPECT_EQ(shown({"gpu1_rank0.log", "gpu2_rank1.log"}), "0@gpu1 1@gpu2");
}

}  // namespace
}  // namespace postflight
