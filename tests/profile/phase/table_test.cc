#include "profile/phase/table.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace postflight {
namespace {

using ::testing::IsEmpty;

class PhaseTableTest : public ::testing::Test {
 protected:
  std::vector<std::string> names(pid_t tid) {
    std::vector<std::string> names;
    for (const std::uint32_t phase : reader_->phases(tid)) {
      const SeenPhase seen = reader_->seen(phase);
      names.push_back(seen.frame_id.empty() ? seen.name
                                            : seen.name + " " + seen.frame_id);
    }
    return names;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
  std::filesystem::path path_ = phase_table_path(folder_->path(), 42);
  Result<PhaseTable> table_ = PhaseTable::create(path_);
  Result<PhaseTableReader> reader_ = PhaseTableReader::open(path_);
};

using Names = std::vector<std::string>;

TEST_F(PhaseTableTest, ShowsNestedPhases) {
  EXPECT_EQ(path_.filename(), "42.phases");
  table_->begin(7, "compile", "0/0");
  table_->begin(7, "lower", "");
  table_->begin(8, "load", "");
  EXPECT_EQ(names(7), (Names{"compile 0/0", "lower"}));
  EXPECT_EQ(names(8), Names{"load"});
  EXPECT_THAT(names(9), IsEmpty());
  table_->end(7);
  EXPECT_EQ(names(7), Names{"compile 0/0"});
  table_->end(7);
  EXPECT_THAT(names(7), IsEmpty());
  EXPECT_EQ(names(0), Names{"load"});
}

TEST_F(PhaseTableTest, EndsWithTheScopeHoweverItIsLeft) {
  const pid_t tid = ::gettid();
  try {
    const Phase outer(&*table_, "outer");
    const Phase inner(&*table_, "inner", "1/0");
    EXPECT_EQ(names(tid), (Names{"outer", "inner 1/0"}));
    throw 1;
  } catch (int) {
  }
  EXPECT_THAT(names(tid), IsEmpty());
  const Phase unseen(nullptr, "unseen");
}

TEST_F(PhaseTableTest, KeepsThreadsApart) {
  const Phase here(&*table_, "here");
  Names there;
  std::thread([&] {
    const Phase phase(&*table_, "there");
    there = names(::gettid());
  }).join();
  EXPECT_EQ(there, Names{"there"});
  EXPECT_EQ(names(::gettid()), Names{"here"});
}

TEST_F(PhaseTableTest, GivesPlacesBack) {
  for (int tid = 1; tid < 5000; ++tid) {
    table_->begin(tid, "x", "");
    EXPECT_EQ(names(tid), Names{"x"});
    table_->end(tid);
  }
}

TEST_F(PhaseTableTest, GoesOnWhenItIsFull) {
  for (int tid = 1; tid <= 600; ++tid)
    table_->begin(tid, "x", "");
  EXPECT_EQ(names(512), Names{"x"});
  EXPECT_THAT(names(513), IsEmpty());
  for (int i = 0; i < 3000; ++i)
    table_->begin(1, std::string(200, 'y') + std::to_string(i), "");
  EXPECT_EQ(names(1).size(), PhaseTableLayout::kMostPhases);
  for (int i = 0; i < 3000; ++i)
    table_->end(1);
  EXPECT_EQ(names(1), Names{"x"});
}

TEST_F(PhaseTableTest, BelievesNothing) {
  table_->begin(7, "compile", "0/0");
  const std::size_t size = std::filesystem::file_size(path_);
  ASSERT_EQ(size, PhaseTableLayout::kBytes);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  // Header, the first slot and the first name, byte by byte.
  const std::size_t name = PhaseTableLayout::kNamesOffset + 4;
  std::vector<std::size_t> places;
  for (std::size_t i = 8; i < 64 + PhaseTableLayout::kSlotBytes; ++i)
    places.push_back(i);
  for (std::size_t i = name; i < name + 8; ++i)
    places.push_back(i);
  for (const std::size_t place : places) {
    file.seekg(static_cast<std::streamoff>(place));
    const int before = file.get();
    for (const int value : {0xff, 0x7f, 0x01}) {
      file.seekp(static_cast<std::streamoff>(place));
      file.put(static_cast<char>(value));
      file.flush();
      EXPECT_LE(names(7).size(), PhaseTableLayout::kMostPhases);
      EXPECT_LE(names(0).size(), PhaseTableLayout::kMostPhases);
    }
    file.seekp(static_cast<std::streamoff>(place));
    file.put(static_cast<char>(before));
    file.flush();
  }
  EXPECT_EQ(reader_->seen(3).name, "?");
  EXPECT_EQ(reader_->seen(~0U).name, "?");
}

// Written by the Python module only.
TEST_F(PhaseTableTest, HasNamesOfThreadsAndOwnersOfPhases) {
  using Layout = PhaseTableLayout;
  table_->begin(7, "load", "");
  EXPECT_EQ(reader_->thread_name(7), "");
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&file](std::size_t at, auto value) {
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&value), sizeof(value));
    file.flush();
  };
  constexpr std::uint32_t kFirst = 4;
  put(Layout::kNamesOffset + kFirst + 4, std::uint64_t{0xc0de});
  EXPECT_EQ(reader_->seen(kFirst),
            (SeenPhase{.name = "load", .frame_id = "", .owner = 0xc0de}));
  put(Layout::kHeaderBytes + Layout::kNameOffset, kFirst);
  EXPECT_EQ(reader_->thread_name(7), "load");
  EXPECT_EQ(reader_->thread_name(8), "");
  put(Layout::kHeaderBytes + Layout::kNameOffset, ~0U);
  EXPECT_EQ(reader_->thread_name(7), "?");
}

TEST_F(PhaseTableTest, RefusesOtherFiles) {
  const std::filesystem::path other = folder_->path() / "other";
  std::ofstream(other) << "x";
  const Result<PhaseTableReader> reader = PhaseTableReader::open(other);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().message(), other.native() + " is not a phase table");
}

}  // namespace
}  // namespace postflight
