#include "flight/model/recorder_dump.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/test_files.h"
#include "flight/dump_difference.h"
#include "flight/model/dump_value.h"
#include "pickle/machine.h"
#include "synthetic/synthetic_job.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

Bytes bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// What the reader of values makes of it.
std::optional<Dump> from_tree(const std::string& bytes, MemberLists& lists) {
  Machine machine;
  const Result<Pickle> pickle = machine.load(bytes_of(bytes));
  if (!pickle)
    return std::nullopt;
  Result<Dump> dump = dump_from_value(pickle->root, lists);
  if (!dump)
    return std::nullopt;
  return *std::move(dump);
}

// Whether the dump was read; it must then be the same as from the tree.
bool reads_as_the_tree(const std::string& bytes) {
  MemberLists lists;
  const std::optional<Dump> direct = read_recorder_dump(bytes_of(bytes), lists);
  if (!direct)
    return false;
  const std::optional<Dump> tree = from_tree(bytes, lists);
  EXPECT_TRUE(tree);
  if (tree) {
    EXPECT_EQ(difference(*direct, *tree), "");
  }
  return true;
}

TEST(RecorderDump, ReadsAllRealPickledDumps) {
  int read = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(std::string(TEST_DATA) + "/flight")) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || name.find("_trace_rank_") == name.npos ||
        entry.file_size() == 0)
      continue;
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = read_file(entry.path());
    if (bytes.starts_with("\x80\x02")) {
      EXPECT_TRUE(reads_as_the_tree(bytes));
      ++read;
    }
  }
  EXPECT_GT(read, 20);
}

TEST(RecorderDump, ReadsSimulatedDumpsOfEveryVersion) {
  const auto job = synthetic::make_job(
      {.layout = {.tensor = 2, .pipeline = 2, .data = 2},
       .versions = {"2.2", "2.3", "2.5", "2.6", "2.7", "2.9", "2.10"},
       .timing = true,
       .fault = synthetic::FaultKind::kNeverJoined});
  ASSERT_TRUE(job);
  for (int rank = 0; rank < job->world(); ++rank)
    EXPECT_TRUE(reads_as_the_tree(job->dump(rank)));
}

std::string small_dump() {
  synthetic::JobOptions options{.layout = {.data = 2}, .timing = true};
  options.schedule = {.steps = 1, .microbatches = 1, .layers = 1};
  return synthetic::make_job(options)->dump(0);
}

TEST(RecorderDump, LeavesEveryPrefixToTheTree) {
  MemberLists lists;
  const std::string whole = small_dump();
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(
        read_recorder_dump(bytes_of(std::string(whole.data(), size)), lists))
        << size;
  EXPECT_TRUE(read_recorder_dump(bytes_of(whole), lists));
}

TEST(RecorderDump, AgreesWithTheTreeWhateverByteIsFlipped) {
  const std::string whole = small_dump();
  int read = 0;
  for (std::size_t place = 0; place < whole.size(); ++place)
    for (const int bit : {0, 1, 3, 5, 7}) {
      std::string changed = whole;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      SCOPED_TRACE(place);
      read += reads_as_the_tree(changed) ? 1 : 0;
    }
  EXPECT_GT(read, 1000);
}

// Most entries are read as bytes that came before; here one of them differs.
TEST(RecorderDump, AgreesWithTheTreeWhereARepeatedEntryIsChanged) {
  synthetic::JobOptions options{.layout = {.data = 2}, .timing = true};
  options.schedule = {.steps = 4, .microbatches = 1, .layers = 2};
  const std::string whole = synthetic::make_job(options)->dump(0);
  int read = 0;
  for (std::size_t place = whole.size() * 3 / 4; place < whole.size(); ++place)
    for (const int bit : {0, 2, 6}) {
      std::string changed = whole;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      SCOPED_TRACE(place);
      read += reads_as_the_tree(changed) ? 1 : 0;
    }
  EXPECT_GT(read, 100);
}

TEST(RecorderDump, LeavesOtherPicklesToTheTree) {
  MemberLists lists;
  for (const std::string& other :
       {std::string("\x80\x04}."), std::string("\x80\x02]."),
        std::string("\x80\x02}(X\x07\0\0\0versionX\x04\0\0\0"
                    "2.10u.",
                    28)})
    EXPECT_FALSE(read_recorder_dump(bytes_of(other), lists));
}

}  // namespace
}  // namespace postflight
