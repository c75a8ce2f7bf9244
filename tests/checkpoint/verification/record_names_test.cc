#include "checkpoint/verification/record_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace postflight {
namespace {

// Names of all lengths that CityHash treats differently.
std::vector<std::string> some_names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    if (i % 7 == 3)
      names.push_back(
          fmt::format("data/weights/{}{}",
                      std::string(static_cast<std::size_t>(i % 90), 'x'), i));
    else if (i % 7 == 5)
      names.push_back(fmt::format("{}", i));
    else
      names.push_back(fmt::format("data/{}", i));
  }
  return names;
}

void expect_hashes(const std::map<int, std::uint64_t>& expected,
                   CppLibrary library) {
  for (const auto& [count, hash] : expected)
    EXPECT_EQ(hash_of_names(some_names(count), library), hash)
        << count << " names";
}

// Issue 16. Printed by a program that clang 14 built with its libc++.
TEST(RecordNames, AreHashedAsLibcxxDoes) {
  expect_hashes({{0, 0u},
                 {1, 1095723916372201313u},
                 {2, 3679228318107975514u},
                 {3, 16191898618094028442u},
                 {5, 3731844180104914624u},
                 {6, 5358232877877356831u},
                 {9, 15189344370953409316u},
                 {12, 9415536229931800882u},
                 {20, 12268659092377160983u},
                 {50, 4177872009464908117u},
                 {100, 9686918851777148689u},
                 {300, 4139012768466005076u},
                 {1000, 8848566287822587272u},
                 {5000, 10375918108116479452u}},
                CppLibrary::kLibcxx);
}

// By a model of its buckets in another language.
TEST(RecordNames, AreOrderedAsMsvcDoes) {
  expect_hashes({{1, 17380616843524682659u},
                 {2, 10064547577563822429u},
                 {3, 8399448657591848073u},
                 {9, 297431882706901527u},
                 {20, 8552290921355455452u},
                 {50, 9858120381843205713u},
                 {100, 7380768417786290133u},
                 {300, 8574399073629255110u},
                 {1000, 4907039233731272506u},
                 {5000, 12552513854577553701u}},
                CppLibrary::kMsvc);
}

// The names and ids of archives that torch saved on these platforms.
TEST(RecordNames, GiveTheIdsOfRealArchives) {
  EXPECT_EQ(
      hash_of_names(
          std::vector<std::string>{"data.pkl", "byteorder", "data/0", "data/1",
                                   "data/2", "data/3", "data/4", "data/5",
                                   "data/6", "data/7", "version"},
          CppLibrary::kMsvc),
      1181052462161757592u);
  EXPECT_EQ(hash_of_names(
                std::vector<std::string>{"data.pkl", ".format_version",
                                         ".storage_alignment", "byteorder",
                                         "data/0", "data/1", "data/2", "data/3",
                                         "data/4", "data/5", "version"},
                CppLibrary::kLibcxx),
            11118979110553026101u);
}

TEST(RecordNames, AreHashedByFnv1aAsMsvcDoes) {
  // From the authors of FNV.
  EXPECT_EQ(string_hash("", CppLibrary::kMsvc), 0xcbf29ce484222325);
  EXPECT_EQ(string_hash("a", CppLibrary::kMsvc), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(string_hash("foobar", CppLibrary::kMsvc), 0x85944171f73967e8);
}

}  // namespace
}  // namespace postflight
