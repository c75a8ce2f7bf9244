#include "profile/python/stack.h"

#include <cstring>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "profile/python/code_reader.h"
#include "profile/python/locator.h"

namespace postflight {
namespace {

// 4 kB of memory at kBase, and nothing elsewhere.
class SmallMemory final : public Memory {
 public:
  static constexpr std::uint64_t kBase = 0x10000;

  using Memory::read;
  std::size_t read(std::span<const MemoryPiece> pieces) const override {
    std::size_t done = 0;
    for (const MemoryPiece& piece : pieces) {
      if (piece.address < kBase ||
          piece.address - kBase + piece.to.size() > bytes.size() ||
          piece.address - kBase > bytes.size())
        return done;
      if (!piece.to.empty())
        std::memcpy(piece.to.data(), bytes.data() + (piece.address - kBase),
                    piece.to.size());
      ++done;
    }
    return done;
  }
  void put(std::uint64_t address, std::uint64_t value) {
    std::memcpy(bytes.data() + (address - kBase), &value, sizeof(value));
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(4096);
};

// Three frames of 3.11 at 0x10800, 0x10900 and 0x10a00, the last on top; they
// run code at 1, 2 and 3.
SmallMemory three_frames() {
  SmallMemory memory;
  const std::uint64_t thread = SmallMemory::kBase;
  const std::uint64_t chunk = 0x10400;
  memory.put(thread + 56, 0x10300);  // cframe
  memory.put(0x10300 + 8, 0x10a00);  // current_frame
  memory.put(thread + 296, chunk);
  memory.put(chunk, 0);
  memory.put(chunk + 8, 0x800);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t frame = 0x10800 + i * 0x100;
    memory.put(frame + 32, i + 1);
    memory.put(frame + 48, i == 0 ? 0 : frame - 0x100);
    memory.put(frame + 56, 100 * i);
  }
  return memory;
}

const PythonLayout& layout() {
  static const PythonLayout known = *python_layout({3, 11, 2}, {});
  return known;
}

TEST(PythonStack, WalksFromTheInnermostFrame) {
  const SmallMemory memory = three_frames();
  PythonStackReader reader(memory, layout(), SmallMemory::kBase, 500);
  const RawStack& stack = reader.read();
  EXPECT_EQ(stack.state, StackState::kWhole);
  ASSERT_EQ(stack.frames.size(), 3U);
  EXPECT_EQ(stack.frames[0].code, 3U);
  EXPECT_EQ(stack.frames[0].instruction, 200U);
  EXPECT_EQ(stack.frames[2].frame, 0x10800U);
}

TEST(PythonStack, CutsWhatIsTooDeep) {
  const SmallMemory memory = three_frames();
  PythonStackReader reader(memory, layout(), SmallMemory::kBase, 2);
  const RawStack& stack = reader.read();
  EXPECT_TRUE(stack.cut);
  ASSERT_EQ(stack.frames.size(), 2U);
  EXPECT_EQ(stack.frames[0].code, 3U);
}

TEST(PythonStack, EndsOnACircle) {
  SmallMemory memory = three_frames();
  memory.put(0x10800 + 48, 0x10a00);
  PythonStackReader reader(memory, layout(), SmallMemory::kBase, 500);
  EXPECT_TRUE(reader.read().cut);
}

TEST(PythonStack, SaysWhatCannotBeRead) {
  SmallMemory memory = three_frames();
  memory.put(0x10a00 + 48, 0x99998);
  PythonStackReader reader(memory, layout(), SmallMemory::kBase, 500);
  const RawStack& stack = reader.read();
  EXPECT_EQ(stack.state, StackState::kUnreadable);
  EXPECT_TRUE(stack.frames.empty());
}

TEST(PythonStack, HasNoFramesWhenNothingRuns) {
  SmallMemory memory = three_frames();
  memory.put(SmallMemory::kBase + 56, 0);
  PythonStackReader reader(memory, layout(), SmallMemory::kBase, 500);
  const RawStack& stack = reader.read();
  EXPECT_EQ(stack.state, StackState::kWhole);
  EXPECT_TRUE(stack.frames.empty());
}

// Every word may be anything: an address that is not there, one that is, or a
// number that is neither.
RC_GTEST_PROP(PythonStack, TakesAnyMemory,
              (const std::map<std::uint16_t, std::uint16_t>& words)) {
  SmallMemory memory = three_frames();
  for (const auto& [at, value] : words)
    memory.put(SmallMemory::kBase + std::uint64_t{at} % 510 * 8,
               SmallMemory::kBase + value % 0x1100);
  for (const PythonVersion& version :
       {PythonVersion{3, 9, 0}, PythonVersion{3, 11, 0},
        PythonVersion{3, 12, 0}}) {
    const PythonRuntime runtime = {.address = SmallMemory::kBase,
                                   .version = version,
                                   .layout = *python_layout(version, {})};
    PythonStackReader reader(memory, runtime.layout, SmallMemory::kBase, 50);
    CodeReader codes(memory, runtime, {});
    for (const RawFrame& frame : reader.read().frames)
      if (const PythonCode* const code = codes.find(frame.code))
        RC_ASSERT(codes.line(*code, frame) >= INT32_MIN);
    RC_ASSERT(python_threads(memory, runtime).size() <= 100'000U);
  }
}

}  // namespace
}  // namespace postflight
