// For any input: no crash, a clear error, and memory bounded by 64 times the
// input.

#include "pickle/machine.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/repr.h"

namespace postflight {
namespace {

std::string real_dump() {
  std::ifstream file(TEST_DATA "/flight/gloo_crashed_rank/gloo_trace_rank_0",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Every opcode that has an argument, and the others that CPython writes.
std::string sampler() {
  return pickle(
      "PROTO 5 FRAME 150 MARK EMPTY_DICT SHORT_BINUNICODE 'key' MEMOIZE "
      "BININT 100000 SETITEM BININT2 300 BININT1 7 INT '12' LONG '123L' FLOAT "
      "'1.5' STRING '\\'a\\\\x41\\'' UNICODE 'a\\\\u20ac' GLOBAL 'os' 'system' "
      "EMPTY_TUPLE REDUCE MARK INST 'a' 'b' NONE BUILD PERSID 'id' GET '0' PUT "
      "'1' BINFLOAT 0.1 LONG1 -300 LONG4 70000 BINSTRING 'x' SHORT_BINSTRING "
      "'y' BINUNICODE 'z' BINUNICODE8 'w' BINBYTES 'b' SHORT_BINBYTES 'c' "
      "BINBYTES8 'd' BYTEARRAY8 'e' LONG_BINPUT 9 LONG_BINGET 9 EXT1 1 EXT2 2 "
      "EXT4 3 NEXT_BUFFER READONLY_BUFFER EMPTY_SET MARK NONE ADDITEMS MARK "
      "FROZENSET TUPLE1 TUPLE2 TUPLE3 BINPERSID EMPTY_LIST MARK NEWTRUE "
      "NEWFALSE APPENDS TUPLE STOP");
}

constexpr std::uint64_t kPerByte = 64;

// An exact-size heap copy, so that AddressSanitizer detects overreads.
std::uint64_t memory_of(std::string_view bytes) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  Machine machine;
  static_cast<void>(
      machine.load(as_bytes(std::string_view(copy.data(), copy.size()))));
  return machine.memory_bytes();
}

TEST(MachineRobustness, ReadsItsSamples) {
  for (const std::string& sample : {sampler(), real_dump()}) {
    Machine machine;
    const Result<Pickle> read = machine.load(as_bytes(sample));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->size, sample.size());
  }
}

TEST(MachineRobustness, FailsOnEveryPrefix) {
  for (const std::string& sample : {sampler(), real_dump()})
    for (std::size_t size = 0; size < sample.size(); ++size) {
      const std::vector<char> prefix(
          sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(size));
      Machine machine;
      const Result<Pickle> read =
          machine.load(as_bytes(std::string_view(prefix.data(), size)));
      ASSERT_FALSE(read) << "the first " << size << " bytes";
      ASSERT_LE(machine.memory_bytes(), kPerByte * size + (1 << 20));
    }
}

TEST(MachineRobustness, SurvivesEveryFlippedByte) {
  for (std::string sample : {sampler(), real_dump()})
    for (std::size_t at = 0; at < sample.size(); ++at)
      for (const int flip : {0xff, 0x80, 0x01, 0x20}) {
        const char original = sample[at];
        sample[at] = static_cast<char>(original ^ flip);
        ASSERT_LE(memory_of(sample), kPerByte * sample.size() + (1 << 20))
            << "byte " << at << " flipped with " << flip;
        sample[at] = original;
      }
}

// Opcodes in a short form that is usually valid.
std::vector<std::string> all_opcodes() {
  std::vector<std::string> all;
  for (int code = 0; code < 256; ++code) {
    const OpcodeInfo* const info = opcode_info(static_cast<std::uint8_t>(code));
    if (info == nullptr || info->code == Opcode::kStop)
      continue;
    std::string text(info->name);
    switch (info->argument) {
      case Argument::kNone:
        break;
      case Argument::kLine:
        text += info->code == Opcode::kString ? " '\\'\\''" : " '1'";
        break;
      case Argument::kTwoLines:
        text += " '' ''";
        break;
      default:
        text += info->argument >= Argument::kBlob1 ? " ''" : " 1";
        break;
    }
    all.push_back(pickle(text));
  }
  return all;
}

struct Bomb {
  std::string start;
  std::string body;   // repeated up to half the size
  std::string after;  // repeated for the rest

  std::string bytes(std::size_t size) const {
    std::string out = start;
    while (out.size() < size / 2)
      out += body;
    while (out.size() < size)
      out += after;
    return out;
  }
};

// The law, for bombs of 64 KB; then for the worst of them and for all sizes.
void expect_law(const std::vector<Bomb>& bombs) {
  struct Measured {
    std::uint64_t memory;
    const Bomb* bomb;
  };
  std::vector<Measured> all;
  const auto check = [](const Bomb& bomb, std::size_t size) {
    const std::string bytes = bomb.bytes(size);
    const std::uint64_t memory = memory_of(bytes);
    EXPECT_LE(memory, kPerByte * bytes.size() + (2 << 20))
        << repr_bytes(bomb.start) << ", then " << repr_bytes(bomb.body)
        << ", then " << repr_bytes(bomb.after) << " in " << bytes.size()
        << " bytes";
    return memory;
  };
  for (const Bomb& bomb : bombs)
    all.push_back({check(bomb, 64 << 10), &bomb});
  std::ranges::sort(all, std::greater(), &Measured::memory);
  all.resize(std::min<std::size_t>(all.size(), 20));
  for (const Measured& worst : all)
    for (const std::size_t size : {90 << 10, 130 << 10, 180 << 10, 1 << 20})
      check(*worst.bomb, size);
}

TEST(MachineMemory, StaysLowForEveryOpcodeRepeatedAfterEveryOther) {
  std::vector<Bomb> bombs;
  for (const std::string& first : all_opcodes())
    for (const std::string& second : all_opcodes())
      for (const char* const start : {"", "]", "}]("})
        bombs.push_back({start, first, second});
  expect_law(bombs);
}

TEST(MachineMemory, StaysLowForEveryPairOfOpcodes) {
  std::vector<Bomb> bombs;
  for (const std::string& first : all_opcodes())
    for (const std::string& second : all_opcodes())
      for (const char* const start : {"", "]]]"})
        bombs.push_back({start, first + second, first + second});
  expect_law(bombs);
}

TEST(MachineMemory, StaysLowForBombs) {
  const auto repeated = [](const char* start, const char* body) {
    return Bomb{pickle(start), pickle(body), pickle(body)};
  };
  const auto halves = [](const char* body, const char* after) {
    return Bomb{"", pickle(body), pickle(after)};
  };
  std::vector<Bomb> bombs = {
      repeated("", "NONE TUPLE1"),
      repeated("NONE", "TUPLE1"),
      repeated("NONE", "EMPTY_TUPLE REDUCE"),
      repeated("NONE", "DUP TUPLE2"),
      repeated("NONE", "BINPERSID"),
      repeated("NONE", "MEMOIZE"),
      repeated("NONE", "NONE BUILD"),
      repeated("", "NONE NONE BUILD"),
      repeated("", "NONE NONE APPEND"),
      repeated("", "NONE NONE NONE SETITEM"),
      repeated("EMPTY_LIST", "NONE APPEND"),
      repeated("EMPTY_LIST", "MARK NONE APPENDS"),
      repeated("EMPTY_LIST MARK NONE NONE NONE APPENDS", "NONE APPEND"),
      repeated("EMPTY_DICT", "NONE NONE SETITEM"),
      repeated("EMPTY_SET", "MARK NONE ADDITEMS"),
      repeated("", "EMPTY_LIST NONE APPEND"),
      repeated("", "EMPTY_DICT NONE NONE SETITEM"),
      repeated("", "GLOBAL '' ''"),
      repeated("", "MARK INST '' ''"),
      repeated("BINUNICODE '' MEMOIZE", "BINGET 0 BINGET 0 STACK_GLOBAL"),
      repeated("BINUNICODE ''", "DUP DUP STACK_GLOBAL POP"),
      repeated("", "LONG1 '123456789'"),
      repeated("", "LONG '9223372036854775807'"),
      repeated("", "UNICODE '\\xff'"),
      repeated("", "UNICODE ''"),
      repeated("", "STRING '\\'\\''"),
      repeated("", "FLOAT '1'"),
      repeated("", "PERSID ''"),
      halves("MARK", "TUPLE"),
      halves("MARK", "LIST"),
      halves("MARK", "DICT"),
      halves("MARK NONE", "OBJ"),
      halves("NONE", "BUILD"),
      halves("NONE", "APPEND"),
      halves("NONE", "REDUCE"),
      halves("EMPTY_LIST", "APPEND"),
      halves("EMPTY_LIST NONE", "SETITEM"),
      halves("EMPTY_TUPLE", "NEWOBJ"),
  };
  // Many lists that grow by one at a time: the memo reaches each of them.
  std::string lists;
  for (int i = 0; i < 256; ++i)
    lists += pickle(fmt::format("EMPTY_LIST BINPUT {} POP ", i));
  std::string round;
  for (int i = 0; i < 256; ++i)
    round += pickle(fmt::format("BINGET {} NONE APPEND POP ", i));
  bombs.push_back({lists, round, round});
  expect_law(bombs);
}

TEST(MachineMemory, StaysLowForMemoKeysFarApart) {
  for (const std::uint32_t stride : {257u, 4099u, 65536u, 1000003u}) {
    std::string bytes = pickle("NONE");
    std::uint32_t key = 0;
    while (bytes.size() < 1 << 20)
      bytes += pickle(fmt::format("LONG_BINPUT {}", key += stride));
    EXPECT_LE(memory_of(bytes), kPerByte * bytes.size()) << stride;
  }
}

TEST(MachineMemory, StaysLowWhenOneEntryIsFarAway) {
  EXPECT_LE(memory_of(pickle("NONE LONG_BINPUT 4294967295 STOP")), 1u << 20);
  EXPECT_LE(memory_of(pickle("NONE PUT '9223372036854775807' STOP")), 1u << 20);
}

constexpr std::size_t kDepth = 1'000'000;

std::string times(std::size_t count, std::string_view text) {
  const std::string once = pickle(text);
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    all += once;
  return all;
}

// Neither reading nor destroying values recurses.
void expect_depth(const std::string& bytes, Kind kind) {
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size, bytes.size());
  const bool is_dict = kind == Kind::kDict;
  Value value = read->root;
  std::size_t depth = 1;
  while (value.is(kind) &&
         !(is_dict ? value.pairs().empty() : value.items().empty())) {
    value = is_dict ? value.pairs()[0].value : value.items()[0];
    ++depth;
  }
  EXPECT_EQ(depth, kDepth);
}

TEST(MachineDepth, ReadsAMillionListsInEachOther) {
  expect_depth(times(kDepth, "EMPTY_LIST") + times(kDepth - 1, "APPEND") + '.',
               Kind::kList);
}

TEST(MachineDepth, ReadsAMillionTuplesInEachOther) {
  expect_depth(times(kDepth, "MARK") + times(kDepth, "TUPLE") + '.',
               Kind::kTuple);
  expect_depth(pickle("EMPTY_TUPLE") + times(kDepth - 1, "TUPLE1") + '.',
               Kind::kTuple);
}

TEST(MachineDepth, ReadsAMillionDictsInEachOther) {
  expect_depth(times(kDepth - 1, "EMPTY_DICT NONE") + pickle("EMPTY_DICT") +
                   times(kDepth - 1, "SETITEM") + '.',
               Kind::kDict);
}

TEST(MachineDepth, ReadsAMillionCallsInEachOther) {
  const std::string bytes =
      pickle("NONE") + times(kDepth, "EMPTY_TUPLE REDUCE") + '.';
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(machine.objects().size(), kDepth);
}

}  // namespace
}  // namespace postflight
