#include "profile/python/line_table.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

struct Recorded {
  std::string version;
  std::int32_t first_line = 0;
  std::vector<std::byte> table;
  std::vector<std::pair<std::int64_t, std::int32_t>> lines;

  LineTableKind kind() const {
    if (version == "3.9")
      return LineTableKind::kDeltas;
    return version == "3.10" ? LineTableKind::kRanges
                             : LineTableKind::kLocations;
  }
};

std::vector<Recorded> recorded_tables() {
  std::vector<Recorded> tables;
  std::ifstream file(TEST_DATA "/profile/line_tables.txt");
  std::string hex;
  std::string pairs;
  for (Recorded table;
       file >> table.version >> table.first_line >> hex >> pairs;
       tables.push_back(table)) {
    table.table.clear();
    table.lines.clear();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      table.table.push_back(
          static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    std::istringstream stream(pairs);
    for (std::string pair; std::getline(stream, pair, ',');)
      table.lines.emplace_back(std::stoll(pair),
                               std::stoi(pair.substr(pair.find(':') + 1)));
  }
  return tables;
}

TEST(LineTable, AgreesWithEveryPython) {
  const std::vector<Recorded> tables = recorded_tables();
  ASSERT_EQ(tables.size(), 15U);
  for (const Recorded& table : tables)
    for (const auto& [offset, line] : table.lines)
      EXPECT_EQ(line_of(table.kind(), table.table, table.first_line, offset)
                    .value_or(0),
                line)
          << table.version << " at " << offset;
}

TEST(LineTable, GivesTheFirstLineBeforeTheFirstInstruction) {
  EXPECT_EQ(line_of(LineTableKind::kLocations, {}, 7, -2), 7);
}

TEST(LineTable, HasNoLineBehindTheEnd) {
  EXPECT_EQ(line_of(LineTableKind::kLocations, {}, 7, 0), std::nullopt);
  EXPECT_EQ(line_of(LineTableKind::kRanges, {}, 7, 0), std::nullopt);
}

RC_GTEST_PROP(LineTable, TakesAnyBytes,
              (const std::vector<std::uint8_t>& any)) {
  const Bytes table = std::as_bytes(std::span(any));
  for (const LineTableKind kind :
       {LineTableKind::kDeltas, LineTableKind::kRanges,
        LineTableKind::kLocations})
    for (const std::int64_t offset :
         {std::int64_t{0}, std::int64_t{40}, std::int64_t{INT64_MAX}}) {
      const auto line = line_of(kind, table, INT32_MAX, offset);
      RC_ASSERT(!line || *line > 0);
    }
}

}  // namespace
}  // namespace postflight
