#include "stacks/locals.h"

#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

constexpr std::uint64_t kCode = 0x10000;
constexpr std::uint64_t kNames = 0x20000;
constexpr std::uint64_t kName = 0x30000;

// Memory in which every word has the same value, but for a code object with
// one variable, "x".
class UniformMemory final : public Memory {
 public:
  explicit UniformMemory(std::uint64_t word) : word_(word) {
    words_[kCode + 96] = kNames;
    words_[kNames + 16] = 1;
    words_[kNames + 24] = kName;
    words_[kName + 16] = 1;
    words_[kName + 32] = 0x19 << 2;  // compact, ASCII, a byte per character
    words_[kName + 48] = 'x';
  }

  using Memory::read;
  std::size_t read(std::span<const MemoryPiece> pieces) const override {
    for (const MemoryPiece& piece : pieces)
      for (std::size_t i = 0; i < piece.to.size(); ++i) {
        const std::uint64_t address = piece.address + i;
        const auto found = words_.find(address & ~std::uint64_t{7});
        const std::uint64_t word =
            found == words_.end() ? word_ : found->second;
        piece.to[i] = static_cast<std::byte>(word >> 8 * (address % 8));
      }
    return pieces.size();
  }

 private:
  std::uint64_t word_;
  std::map<std::uint64_t, std::uint64_t> words_;
};

// A type that is its own type, and says that it is a list, a dict and so on of
// as many items as its address.
TEST(Locals, ShowsLittleOfValuesThatContainThemselves) {
  const Result<PythonLayout> layout = python_layout({3, 11, 2}, {});
  for (unsigned family = 24; family <= 31; ++family) {
    const UniformMemory memory(std::uint64_t{1} << 31 | std::uint64_t{1}
                                                            << family);
    const std::vector<LocalVariable> locals =
        read_locals(memory, *layout, {.frame = 0x40000, .code = kCode});
    ASSERT_EQ(locals.size(), 1U);
    EXPECT_EQ(locals[0].name, "x");
    EXPECT_LT(locals[0].value.size(), 600U) << locals[0].value;
  }
}

TEST(Locals, ShowsWhatIsNotAnObjectAsUnknown) {
  const UniformMemory memory(0x12345670);
  const Result<PythonLayout> layout = python_layout({3, 11, 2}, {});
  EXPECT_EQ(read_locals(memory, *layout, {.frame = 0x40000, .code = kCode}),
            (std::vector<LocalVariable>{{"x", "?"}}));
}

}  // namespace
}  // namespace postflight
