#include "profile/agent/frame_walk.h"

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

// Frames as 3.11 has them, 72 bytes each.
constexpr RingLayout kLayout = {.thread_frame = 0,
                                .frame_code = 32,
                                .frame_previous = 48,
                                .frame_instruction = 56,
                                .has_owner = 1,
                                .frame_owner = 69,
                                .frame_size = 72,
                                .first_shim_owner = 3,
                                .has_is_entry = 1,
                                .is_entry = 68,
                                .most_frames = 4096};
constexpr std::uint64_t kNowhere = 0x1000;

struct MadeFrame {
  std::uint64_t code = 0;
  std::uint64_t instruction = 0;
  std::uint8_t is_entry = 0;
  std::uint8_t owner = 0;
};

// A thread whose frames are in memory of ours, the innermost first.
class MadeThread {
 public:
  explicit MadeThread(const std::vector<MadeFrame>& frames)
      : memory_(9 * frames.size()) {
    for (std::size_t i = frames.size(); i-- > 0;) {
      auto* const bytes = reinterpret_cast<std::byte*>(&memory_[9 * i]);
      std::memcpy(bytes + 32, &frames[i].code, 8);
      std::memcpy(bytes + 48, &top_, 8);
      std::memcpy(bytes + 56, &frames[i].instruction, 8);
      std::memcpy(bytes + 68, &frames[i].is_entry, 1);
      std::memcpy(bytes + 69, &frames[i].owner, 1);
      top_ = address(i);
    }
  }

  std::uint64_t address(std::size_t frame) const {
    return reinterpret_cast<std::uint64_t>(&memory_[9 * frame]);
  }
  void set_previous(std::size_t frame, std::uint64_t previous) {
    memory_[9 * frame + 6] = previous;
  }

  // "1:10 2:20* cut", a star for entries. By both ways of reading, which must
  // agree.
  std::string walked(std::uint32_t most = 100,
                     const RingLayout& layout = kLayout) const {
    sigset_t blocked;
    ::sigfillset(&blocked);
    EXPECT_FALSE(fault_guard_holds(blocked));
    ::sigemptyset(&blocked);
    EXPECT_TRUE(fault_guard_holds(blocked));
    const std::string guarded = walked(true, most, layout);
    EXPECT_EQ(walked(false, most, layout), guarded);
    return guarded;
  }

 private:
  std::string walked(bool guarded, std::uint32_t most,
                     const RingLayout& layout) const {
    std::vector<std::uint64_t> out(kWalkWordsPerFrame * most);
    const FrameWalk walk = walk_frames(reinterpret_cast<std::uint64_t>(&top_),
                                       layout, guarded, out.data(), most);
    std::string text;
    for (std::uint32_t i = 0; i < walk.frames; ++i)
      text += fmt::format("{}:{}{} ", out[2 * i], out[2 * i + 1] & ~kEntryBit,
                          (out[2 * i + 1] & kEntryBit) != 0 ? "*" : "");
    return text + (walk.torn ? "torn" : walk.cut ? "cut" : "whole");
  }

  std::vector<std::uint64_t> memory_;
  std::uint64_t top_ = 0;
};

class FrameWalkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    set_up_fault_guard(SIGRTMAX - 1, [](int, siginfo_t*, void*) {});
  }
};

TEST_F(FrameWalkTest, FollowsFramesToTheirEnd) {
  EXPECT_EQ(MadeThread({{1, 10}, {2, 20, 1}, {3, 30}}).walked(),
            "1:10 2:20* 3:30 whole");
  EXPECT_EQ(MadeThread({}).walked(), "whole");
}

TEST_F(FrameWalkTest, TakesShimsForTheEntriesOfTheFramesInside) {
  EXPECT_EQ(MadeThread({{9, 0, 0, 3}, {1, 10}, {9, 0, 0, 3}, {2, 20}}).walked(),
            "1:10* 2:20 whole");
}

TEST_F(FrameWalkTest, TellsWhetherThereAreMoreThanAreWanted) {
  const MadeThread thread({{1, 10}, {2, 20}, {9, 0, 0, 3}});
  EXPECT_EQ(thread.walked(1), "1:10 cut");
  EXPECT_EQ(thread.walked(2), "1:10 2:20* whole");
}

TEST_F(FrameWalkTest, EndsWhereNoFrameCanBe) {
  MadeThread thread({{1, 10}, {2, 20}, {3, 30}});
  thread.set_previous(1, kNowhere);
  EXPECT_EQ(thread.walked(), "1:10 2:20 torn");
  thread.set_previous(1, thread.address(2) + 4);
  EXPECT_EQ(thread.walked(), "1:10 2:20 torn");
  thread.set_previous(1, thread.address(1));
  EXPECT_EQ(thread.walked(), "1:10 torn");
}

TEST_F(FrameWalkTest, EndsInARing) {
  MadeThread thread({{1, 10}, {9, 0, 0, 3}});
  thread.set_previous(1, thread.address(0));
  EXPECT_EQ(thread.walked(2), "1:10* 1:10* cut");
  MadeThread shims({{9, 0, 0, 3}, {9, 0, 0, 3}});
  shims.set_previous(1, shims.address(0));
  EXPECT_EQ(shims.walked(2), "torn");
}

TEST_F(FrameWalkTest, ReadsFramesWithoutFlags) {
  RingLayout layout = kLayout;
  layout.has_owner = 0;
  layout.has_is_entry = 0;
  layout.all_entries = 1;
  EXPECT_EQ(MadeThread({{1, 10, 0, 3}, {2, 20}}).walked(100, layout),
            "1:10* 2:20* whole");
}

}  // namespace
}  // namespace postflight
