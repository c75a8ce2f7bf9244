#include "pickle/machine.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/shown.h"
#include "pickle/text/disassembler.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The value of a pickle, or "error: " and the error message.
std::string read_bytes(std::string_view bytes) {
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  return read ? shown(read->root)
              : "error: " + std::string(read.error().message());
}

std::string read(std::string_view text) {
  return read_bytes(pickle(text));
}

// A pickle without its STOP, and its value.
struct Line {
  std::string_view text;
  std::string_view value;
};

// Every opcode at least once; a test below checks that.
const Line kLanguage[] = {
    // Numbers and constants.
    {"NONE", "None"},
    {"NEWTRUE", "True"},
    {"NEWFALSE", "False"},
    {"BININT1 255", "255"},
    {"BININT2 65535", "65535"},
    {"BININT -2147483648", "-2147483648"},
    {"LONG1 ''", "0"},
    {"LONG1 -1", "-1"},
    {"LONG1 '\\xff\\x00'", "255"},
    {"LONG1 9223372036854775807", "9223372036854775807"},
    {"LONG1 -9223372036854775808", "-9223372036854775808"},
    {"LONG1 '\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\\x00'",
     "big 9223372036854775808"},
    {"LONG1 '\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\x00'",
     "big 18446744073709551615"},
    {"LONG1 '\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00'", "5"},
    {"LONG4 -70000", "-70000"},
    {"LONG4 ''", "0"},
    {"BINFLOAT 0.1", "0.1"},
    {"BINFLOAT nan", "nan"},
    // Text.
    {"SHORT_BINUNICODE 'caf\\xc3\\xa9'", "'café'"},
    {"BINUNICODE 'a'", "'a'"},
    {"BINUNICODE8 'a'", "'a'"},
    {"BINUNICODE '\\xed\\xa0\\x80'", "'\\ud800'"},
    {"BINUNICODE '\\xff'", "'\\xff'"},
    {"SHORT_BINSTRING 'a\\xff'", "legacy b'a\\xff'"},
    {"BINSTRING 'a'", "legacy b'a'"},
    {"SHORT_BINBYTES 'a\\x00'", "b'a\\x00'"},
    {"BINBYTES 'a'", "b'a'"},
    {"BINBYTES8 ''", "b''"},
    {"BYTEARRAY8 'a'", "bytearray b'a'"},
    // Protocol 0.
    {"INT '12'", "12"},
    {"INT '01'", "True"},
    {"LONG '12L'", "12"},
    {"FLOAT '-1.5e3'", "-1500.0"},
    {"STRING '\\'it\\\\x41\\''", "legacy b'itA'"},
    {"UNICODE 'a\\\\u20ac\\xe9'", "'a€é'"},
    {"PERSID 'id-7'", "persistent 'id-7'"},
    // Containers.
    {"EMPTY_TUPLE", "()"},
    {"NONE TUPLE1", "(None,)"},
    {"NONE NEWTRUE TUPLE2", "(None, True)"},
    {"NONE NEWTRUE NEWFALSE TUPLE3", "(None, True, False)"},
    {"MARK TUPLE", "()"},
    {"MARK BININT1 1 BININT1 2 BININT1 3 BININT1 4 TUPLE", "(1, 2, 3, 4)"},
    {"EMPTY_LIST", "[]"},
    {"EMPTY_LIST BININT1 1 APPEND BININT1 2 APPEND", "[1, 2]"},
    {"EMPTY_LIST MARK BININT1 1 BININT1 2 APPENDS", "[1, 2]"},
    {"EMPTY_LIST MARK BININT1 1 APPENDS MARK BININT1 2 BININT1 3 APPENDS",
     "[1, 2, 3]"},
    {"MARK LIST", "[]"},
    {"MARK BININT1 1 BININT1 2 LIST BININT1 3 APPEND", "[1, 2, 3]"},
    {"EMPTY_DICT", "{}"},
    {"EMPTY_DICT BININT1 1 NONE SETITEM", "{1: None}"},
    {"EMPTY_DICT MARK BININT1 1 NONE BININT1 1 NEWTRUE SETITEMS",
     "{1: None, 1: True}"},
    {"MARK BININT1 1 NONE DICT BININT1 2 NONE SETITEM", "{1: None, 2: None}"},
    {"EMPTY_SET", "set{}"},
    {"EMPTY_SET MARK BININT1 1 BININT1 2 ADDITEMS", "set{1, 2}"},
    {"MARK BININT1 1 BININT1 2 FROZENSET", "frozenset{1, 2}"},
    {"MARK FROZENSET", "frozenset{}"},
    // The stack.
    {"NONE BININT1 1 POP", "None"},
    {"BININT1 1 DUP TUPLE2", "(1, 1)"},
    {"NONE MARK BININT1 1 BININT1 2 POP_MARK", "None"},
    // The memo.
    {"EMPTY_LIST BINPUT 3 BINGET 3 TUPLE2", "(&1 [], *1)"},
    {"EMPTY_LIST LONG_BINPUT 300 LONG_BINGET 300 TUPLE2", "(&1 [], *1)"},
    {"EMPTY_LIST PUT '3' GET '3' TUPLE2", "(&1 [], *1)"},
    {"EMPTY_LIST MEMOIZE BINGET 0 TUPLE2", "(&1 [], *1)"},
    // Names and calls.
    {"GLOBAL 'os' 'system'", "<os.system>"},
    {"SHORT_BINUNICODE 'os' SHORT_BINUNICODE 'system' STACK_GLOBAL",
     "<os.system>"},
    {"GLOBAL 'os' 'system' SHORT_BINUNICODE 'ls' TUPLE1 REDUCE",
     "reduce(<os.system>, ('ls',))"},
    {"GLOBAL 'm' 'C' EMPTY_TUPLE NEWOBJ", "new(<m.C>, ())"},
    {"GLOBAL 'm' 'C' EMPTY_TUPLE EMPTY_DICT SHORT_BINUNICODE 'k' NONE SETITEM "
     "NEWOBJ_EX",
     "new_ex(<m.C>, (), {'k': None})"},
    {"MARK BININT1 1 INST 'm' 'C'", "instance(<m.C>, (1,))"},
    {"MARK GLOBAL 'm' 'C' BININT1 1 BININT1 2 OBJ", "instance(<m.C>, (1, 2))"},
    {"GLOBAL 'm' 'C' EMPTY_TUPLE REDUCE BININT1 1 BUILD BININT1 2 BUILD",
     "reduce(<m.C>, (), states=[1, 2])"},
    {"BININT1 7 BINPERSID", "persistent 7"},
    {"EXT1 255", "extension 255"},
    {"EXT2 65535", "extension 65535"},
    {"EXT4 2147483647", "extension 2147483647"},
    // Out-of-band buffers.
    {"NEXT_BUFFER NEXT_BUFFER TUPLE2", "(buffer 0, buffer 1)"},
    {"NEXT_BUFFER READONLY_BUFFER", "read-only buffer 0"},
    {"SHORT_BINBYTES 'b' READONLY_BUFFER", "b'b'"},
    // Framing.
    {"PROTO 5 NONE", "None"},
    {"FRAME 2 NONE", "None"},
    {"FRAME 0 NONE", "None"},
};

TEST(Machine, ReadsTheWholeLanguage) {
  for (const Line& line : kLanguage)
    EXPECT_EQ(read(std::string(line.text) + " STOP"), line.value) << line.text;
}

TEST(Machine, IsTestedWithEveryOpcode) {
  std::set<Opcode> tested;
  for (const Line& line : kLanguage) {
    const std::string bytes = pickle(std::string(line.text) + " STOP");
    Disassembler disassembler(as_bytes(bytes));
    for (auto next = disassembler.next(); next && *next;
         next = disassembler.next())
      tested.insert((*next)->info->code);
  }
  for (int code = 0; code < 256; ++code) {
    const OpcodeInfo* const info = opcode_info(static_cast<std::uint8_t>(code));
    EXPECT_TRUE(info == nullptr || tested.contains(info->code)) << info->name;
  }
}

TEST(Machine, SaysWhereAPickleEndsAndItsProtocol) {
  const std::string bytes =
      pickle("PROTO 3 BININT1 1 STOP PROTO 4 NONE STOP BININT1 2 STOP");
  Machine machine;
  std::uint64_t at = 0;
  std::vector<std::string> all;
  while (at < bytes.size()) {
    const Result<Pickle> next = machine.load(as_bytes(bytes).subspan(at));
    ASSERT_TRUE(next);
    all.push_back(fmt::format("{} in {} bytes of protocol {}",
                              shown(next->root), next->size, next->protocol));
    at += next->size;
  }
  EXPECT_THAT(all, ElementsAre("1 in 5 bytes of protocol 3",
                               "None in 4 bytes of protocol 4",
                               "2 in 3 bytes of protocol 0"));
}

TEST(Machine, PointsIntoTheInputInsteadOfCopyingText) {
  const std::string bytes = pickle("BINUNICODE 'abc' STOP");
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->root.text().data(), bytes.data() + 5);
}

TEST(Machine, ForgetsMemoAndStackBetweenPickles) {
  const std::string first = pickle("MARK NONE BINPUT 1 NONE STOP");
  const std::string second = pickle("BINGET 1 STOP");
  const std::string third = pickle("TUPLE STOP");
  Machine machine;
  EXPECT_TRUE(machine.load(as_bytes(first)));
  EXPECT_EQ(machine.load(as_bytes(second)).error().message(),
            "byte 0: BINGET refers to a memo entry that does not exist");
  EXPECT_EQ(machine.load(as_bytes(third)).error().message(),
            "byte 0: TUPLE finds no MARK");
}

TEST(Machine, KeepsEarlierValuesUntilReset) {
  const std::string first = pickle("EMPTY_LIST BININT1 1 APPEND STOP");
  const std::string second = pickle("EMPTY_LIST BININT1 2 APPEND STOP");
  Machine machine;
  const Value one = machine.load(as_bytes(first))->root;
  const Value two = machine.load(as_bytes(second))->root;
  EXPECT_EQ(shown(one), "[1]");
  EXPECT_EQ(shown(two), "[2]");
  const std::uint64_t used = machine.memory_bytes();
  for (int i = 0; i < 1000; ++i) {
    machine.reset();
    EXPECT_EQ(shown(machine.load(as_bytes(first))->root), "[1]");
  }
  EXPECT_EQ(machine.memory_bytes(), used);
}

TEST(Machine, KeepsSharingAndCycles) {
  EXPECT_EQ(read("EMPTY_LIST DUP APPEND STOP"), "&1 [*1]");
  EXPECT_EQ(read("EMPTY_LIST MEMOIZE BINGET 0 APPEND STOP"), "&1 [*1]");
  EXPECT_EQ(read("EMPTY_DICT MEMOIZE NONE BINGET 0 SETITEM STOP"),
            "&1 {None: *1}");
  EXPECT_EQ(read("EMPTY_SET MEMOIZE MARK BINGET 0 ADDITEMS STOP"),
            "&1 set{*1}");
  EXPECT_EQ(read("MARK EMPTY_LIST MEMOIZE BINGET 0 BINGET 0 TUPLE1 MEMOIZE "
                 "BINGET 1 TUPLE STOP"),
            "(&1 [], *1, &2 (*1,), *2)");
  // A tuple that holds itself, as CPython writes it: the memo has the list,
  // and the tuple that was made first stays.
  EXPECT_EQ(read("EMPTY_LIST MEMOIZE BINGET 0 TUPLE1 MEMOIZE BINGET 0 BINGET 1 "
                 "APPEND POP STOP"),
            "&1 ([*1],)");
  EXPECT_EQ(read("GLOBAL 'm' 'C' EMPTY_TUPLE NEWOBJ MEMOIZE EMPTY_DICT "
                 "SHORT_BINUNICODE 'me' BINGET 0 SETITEM BUILD STOP"),
            "&1 new(<m.C>, (), states=[{'me': *1}])");
}

TEST(Machine, TellsByIdentityWhatIsOneObject) {
  const std::string bytes =
      pickle("MARK BINUNICODE 'a' MEMOIZE BINGET 0 BINUNICODE 'a' LIST STOP");
  Machine machine;
  const Value root = machine.load(as_bytes(bytes))->root;
  const Value first = root.items()[0];
  EXPECT_EQ(root.items()[1].identity(), first.identity());
  EXPECT_NE(root.items()[2].identity(), first.identity());
  EXPECT_EQ(root.items()[2].text(), first.text());
}

// The globals and calls that load() met, as text.
struct Met {
  std::vector<std::string> globals;
  std::vector<std::string> objects;
};

Met met(std::string_view text) {
  const std::string bytes = pickle(text);
  Machine machine;
  static_cast<void>(machine.load(as_bytes(bytes)));
  Met result;
  for (const Global* const global : machine.globals())
    result.globals.push_back(
        fmt::format("{}.{}", global->module, global->name));
  for (const Object* const object : machine.objects())
    result.objects.push_back(shown(Value::object(object)));
  return result;
}

TEST(Machine, ListsGlobalsAndCallsInOrder) {
  const Met all =
      met("MARK GLOBAL 'a' 'b' SHORT_BINUNICODE 'c' SHORT_BINUNICODE 'd' "
          "STACK_GLOBAL EMPTY_TUPLE REDUCE MARK INST 'e' 'f' LIST STOP");
  EXPECT_THAT(all.globals, ElementsAre("a.b", "c.d", "e.f"));
  EXPECT_THAT(all.objects,
              ElementsAre("reduce(<c.d>, ())", "instance(<e.f>, ())"));
}

TEST(Machine, ListsCallsThatAreDropped) {
  const Met all =
      met("GLOBAL 'os' 'system' SHORT_BINUNICODE 'ls' TUPLE1 REDUCE POP MARK "
          "GLOBAL 'a' 'b' EMPTY_TUPLE NEWOBJ POP_MARK NONE STOP");
  EXPECT_THAT(all.globals, ElementsAre("os.system", "a.b"));
  EXPECT_THAT(all.objects,
              ElementsAre("reduce(<os.system>, ('ls',))", "new(<a.b>, ())"));
}

TEST(Machine, ListsWhatABrokenPickleHadMade) {
  const Met all =
      met("GLOBAL 'os' 'system' SHORT_BINUNICODE 'ls' TUPLE1 REDUCE POP");
  EXPECT_THAT(all.globals, ElementsAre("os.system"));
  EXPECT_THAT(all.objects, ElementsAre("reduce(<os.system>, ('ls',))"));
}

TEST(Machine, ListsOnlyWhatTheLatestLoadMet) {
  const std::string first = pickle("GLOBAL 'a' 'b' EMPTY_TUPLE REDUCE STOP");
  const std::string second = pickle("NONE STOP");
  Machine machine;
  static_cast<void>(machine.load(as_bytes(first)));
  static_cast<void>(machine.load(as_bytes(second)));
  EXPECT_THAT(machine.globals(), IsEmpty());
  EXPECT_THAT(machine.objects(), IsEmpty());
}

TEST(Machine, RecordsWhatIsDoneToAnObject) {
  EXPECT_EQ(read("GLOBAL 'm' 'C' EMPTY_TUPLE REDUCE BININT1 1 APPEND MARK "
                 "BININT1 2 BININT1 3 APPENDS NONE NEWTRUE SETITEM MARK "
                 "BININT1 4 ADDITEMS EMPTY_DICT BUILD STOP"),
            "reduce(<m.C>, (), items=[1, 2, 3, 4], pairs={None: True}, "
            "states=[{}])");
}

TEST(Machine, RecordsWhatIsDoneToAPlainValue) {
  EXPECT_EQ(read("GLOBAL 'm' 'f' EMPTY_DICT BUILD STOP"),
            "touched(<m.f>, states=[{}])");
  EXPECT_EQ(read("EMPTY_LIST NONE BUILD STOP"), "touched([], states=[None])");
  EXPECT_EQ(read("EMPTY_LIST NONE NONE SETITEM STOP"),
            "touched([], pairs={None: None})");
  EXPECT_EQ(read("EMPTY_SET NONE APPEND STOP"), "touched(set{}, items=[None])");
  // Only operations that could run code are listed.
  EXPECT_THAT(met("GLOBAL 'm' 'f' EMPTY_DICT BUILD EMPTY_LIST EMPTY_DICT BUILD "
                  "STOP")
                  .objects,
              ElementsAre("touched(<m.f>, states=[{}])"));
}

TEST(Machine, TakesAddingNothingForNothing) {
  // CPython checks the target only if there is something to add.
  EXPECT_EQ(read("NONE MARK APPENDS STOP"), "None");
  EXPECT_EQ(read("NONE MARK SETITEMS STOP"), "None");
  EXPECT_EQ(read("NONE MARK ADDITEMS STOP"), "None");
  EXPECT_EQ(read("EMPTY_LIST MARK APPENDS STOP"), "[]");
}

// Some opcode sequences are fused, but not with others between them (~).
TEST(Machine, RunsOpcodesTogetherAsOneByOne) {
  constexpr std::string_view kPickles[] = {
      "GLOBAL 'm' 'T'  EMPTY_TUPLE ~ NEWOBJ  MEMOIZE  EMPTY_DICT  MEMOIZE  "
      "MARK  BINGET 1  BINGET 0  BININT1 7  NONE  SETITEMS  BUILD",
      "GLOBAL 'm' 'F'  BININT1 1  TUPLE1 ~ MEMOIZE  TUPLE1  MEMOIZE  REDUCE  "
      "MEMOIZE  BINGET 0  BINGET 1  BINGET 2  TUPLE3  TUPLE2",
      "NONE  GLOBAL 'm' 'F'  BININT1 1  NONE  TUPLE2 ~ MEMOIZE  TUPLE1  "
      "MEMOIZE  REDUCE  MEMOIZE  TUPLE2",
      "NONE  MARK  GLOBAL 'm' 'F'  NONE  NONE  NONE  TUPLE3 ~ MEMOIZE  TUPLE1  "
      "MEMOIZE  REDUCE  MEMOIZE  LIST  TUPLE2"};
  for (const std::string_view text : kPickles) {
    SCOPED_TRACE(text);
    const std::size_t gap = text.find('~');
    const auto filled = [&](std::string_view with) {
      return fmt::format("{}{}{}  STOP  STOP  STOP", text.substr(0, gap), with,
                         text.substr(gap + 1));
    };
    EXPECT_EQ(read(filled("")), read(filled("NONE  POP")));
    EXPECT_THAT(read(filled("")), Not(StartsWith("error")));
  }
}

TEST(Machine, RunsNoOpcodesTogetherThatFindTooLittle) {
  constexpr Line kPickles[] = {
      {"EMPTY_TUPLE  NEWOBJ  MEMOIZE  EMPTY_DICT  MEMOIZE  MARK",
       "error: byte 1: NEWOBJ underflows the stack"},
      {"NONE  MARK  EMPTY_TUPLE  NEWOBJ  MEMOIZE  EMPTY_DICT  MEMOIZE  MARK",
       "error: byte 3: NEWOBJ underflows the stack"},
      {"NONE  TUPLE1  MEMOIZE  TUPLE1  MEMOIZE  REDUCE  MEMOIZE",
       "error: byte 5: REDUCE underflows the stack"},
      {"NONE  MARK  NONE  TUPLE1  MEMOIZE  TUPLE1  MEMOIZE  REDUCE  MEMOIZE",
       "error: byte 7: REDUCE underflows the stack"}};
  for (const Line& line : kPickles)
    EXPECT_EQ(read(fmt::format("{}  STOP  STOP  STOP  STOP", line.text)),
              line.value);
}

// A fused opcode pushes more values than it has bytes.
TEST(Machine, HasRoomForOpcodesThatAreRunTogether) {
  constexpr std::string_view kObject =
      "GLOBAL 'm' 'T'  EMPTY_TUPLE  NEWOBJ  MEMOIZE  EMPTY_DICT  MEMOIZE  MARK";
  for (std::size_t nones = 2000; nones < 2100; ++nones) {
    const std::string bytes = std::string(nones, 'N') + pickle(kObject) +
                              std::string(5000, 'N') + pickle("STOP");
    EXPECT_EQ(read_bytes(bytes), "None");
  }
}

TEST(Machine, CallsWhateverIsCalledInertly) {
  EXPECT_EQ(read("NONE NONE REDUCE STOP"), "reduce(None, None)");
  EXPECT_EQ(read("EXT1 5 EMPTY_TUPLE REDUCE STOP"), "reduce(extension 5, ())");
  EXPECT_EQ(read("MARK NONE OBJ STOP"), "instance(None, ())");
}

TEST(Machine, ImportsNamesThatPython2WroteOrThatACallWouldReturn) {
  EXPECT_EQ(read("SHORT_BINSTRING 'os' BINSTRING 'system' STACK_GLOBAL STOP"),
            "<os.system>");
  EXPECT_EQ(read("GLOBAL 'builtins' 'str' SHORT_BINUNICODE 'os' TUPLE1 REDUCE "
                 "SHORT_BINUNICODE 'system' STACK_GLOBAL STOP"),
            "<(computed).system>");
  EXPECT_EQ(read("SHORT_BINUNICODE 'os' PERSID 'x' STACK_GLOBAL STOP"),
            "<os.(computed)>");
}

TEST(Machine, LetsAMarkBePopped) {
  EXPECT_EQ(read("BININT1 1 MARK POP STOP"), "1");
  EXPECT_EQ(read("MARK BININT1 1 MARK POP BININT1 2 TUPLE STOP"), "(1, 2)");
  EXPECT_EQ(read("MARK POP MARK POP NONE STOP"), "None");
}

TEST(Machine, TakesNestedMarksFromTheInside) {
  EXPECT_EQ(read("MARK MARK MARK TUPLE TUPLE TUPLE STOP"), "(((),),)");
  EXPECT_EQ(read("MARK BININT1 1 MARK BININT1 2 LIST BININT1 3 LIST STOP"),
            "[1, [2], 3]");
}

TEST(Machine, NeverReachesBelowAMark) {
  for (const char* const text : {"DUP",
                                 "TUPLE1",
                                 "NONE TUPLE2",
                                 "NONE NONE TUPLE3",
                                 "NONE APPEND",
                                 "NONE NONE SETITEM",
                                 "BINPUT 1",
                                 "LONG_BINPUT 1",
                                 "PUT '1'",
                                 "MEMOIZE",
                                 "BINPERSID",
                                 "NONE REDUCE",
                                 "NONE NEWOBJ",
                                 "NONE NONE NEWOBJ_EX",
                                 "NONE BUILD",
                                 "BINUNICODE 'a' STACK_GLOBAL",
                                 "READONLY_BUFFER",
                                 "STOP",
                                 "MARK APPENDS",
                                 "MARK SETITEMS",
                                 "MARK ADDITEMS"})
    // Three values, which would be enough, are below the mark.
    EXPECT_THAT(read(fmt::format("NONE NONE NONE MARK {}", text)),
                EndsWith(" underflows the stack"))
        << text;
  EXPECT_EQ(read("NONE MARK OBJ"), "error: byte 2: OBJ underflows the stack");
}

TEST(Machine, AllowsGapsInTheMemo) {
  EXPECT_EQ(read("MARK BININT1 1 BINPUT 255 BININT1 2 LONG_BINPUT 4294967295 "
                 "BININT1 3 PUT '9223372036854775807' BINGET 255 LONG_BINGET "
                 "4294967295 GET '9223372036854775807' TUPLE STOP"),
            "(1, 2, 3, 1, 2, 3)");
}

TEST(Machine, OverwritesMemoEntries) {
  EXPECT_EQ(read("BININT1 1 BINPUT 0 BININT1 2 BINPUT 0 BINGET 0 TUPLE3 STOP"),
            "(1, 2, 2)");
  EXPECT_EQ(read("BININT1 1 LONG_BINPUT 70000 BININT1 2 LONG_BINPUT 70000 "
                 "LONG_BINGET 70000 TUPLE3 STOP"),
            "(1, 2, 2)");
}

TEST(Machine, CountsMemoEntriesForMemoizeAsCpython) {
  // There is one entry, so the next is number 1, whatever the first's key is.
  for (const char* const first :
       {"BINPUT 0", "BINPUT 5", "LONG_BINPUT 300", "LONG_BINPUT 4294967295"})
    EXPECT_EQ(read(fmt::format("MARK BININT1 1 {} BININT1 2 MEMOIZE BINGET 1 "
                               "TUPLE STOP",
                               first)),
              "(1, 2, 2)")
        << first;
  EXPECT_EQ(read("MARK BININT1 1 BINPUT 0 BINPUT 0 BININT1 2 MEMOIZE BINGET 1 "
                 "TUPLE STOP"),
            "(1, 2, 2)");
}

TEST(Machine, CountsAnEntryOnceWhenTheMemoGrowsPastIt) {
  // Entry 1000 is far from all others at first. Entries 1 to 999 follow; the
  // next one is number 1000, which exists, so it and all after it land there.
  std::string text = "MARK BININT1 1 LONG_BINPUT 1000 ";
  for (int i = 1; i < 1000; ++i)
    text += "MEMOIZE ";
  text +=
      "LONG_BINGET 1000 BININT1 2 MEMOIZE LONG_BINGET 1000 BININT1 3 MEMOIZE "
      "LONG_BINGET 1000 TUPLE STOP";
  EXPECT_EQ(read(text), "(1, 1, 2, 2, 3, 3)");
}

TEST(Machine, ReadsLegacyProtocolsAsPython2WroteThem) {
  EXPECT_EQ(read("MARK DICT PUT '0' STRING '\\'a\\'' PUT '1' MARK LIST PUT '2' "
                 "INT '1' APPEND LONG '2L' APPEND FLOAT '2.5' APPEND SETITEM "
                 "STOP"),
            "{legacy b'a': [1, 2, 2.5]}");
  EXPECT_EQ(read("MARK INST '__main__' 'C' PUT '0' MARK DICT STRING '\\'x\\'' "
                 "INT '00' SETITEM BUILD STOP"),
            "instance(<__main__.C>, (), states=[{legacy b'x': False}])");
}

}  // namespace
}  // namespace postflight
