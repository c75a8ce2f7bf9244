#include "pickle/opcode.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(Opcode, IsFoundByItsByte) {
  const OpcodeInfo* info = opcode_info(std::uint8_t{'X'});
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->code, Opcode::kBinUnicode);
  EXPECT_EQ(info->name, "BINUNICODE");
  EXPECT_EQ(info->argument, Argument::kBlob4);
  EXPECT_EQ(info->protocol, 1);
}

TEST(Opcode, IsFoundByItsName) {
  const OpcodeInfo* info = opcode_info("READONLY_BUFFER");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->code, Opcode::kReadOnlyBuffer);
  EXPECT_EQ(info, opcode_info(std::uint8_t{0x98}));
}

TEST(Opcode, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(opcode_info(std::uint8_t{0xff}), nullptr);
  EXPECT_EQ(opcode_info(std::uint8_t{0}), nullptr);
  EXPECT_EQ(opcode_info("BINUNICODE9"), nullptr);
  EXPECT_EQ(opcode_info(""), nullptr);
}

TEST(Opcode, HasAUniqueNameThatLeadsBack) {
  std::set<std::string_view> names;
  for (int code = 0; code < 256; ++code) {
    const OpcodeInfo* info = opcode_info(static_cast<std::uint8_t>(code));
    if (info == nullptr)
      continue;
    EXPECT_EQ(static_cast<int>(info->code), code);
    EXPECT_EQ(opcode_info(info->name), info);
    EXPECT_TRUE(names.insert(info->name).second) << info->name;
  }
  EXPECT_EQ(names.size(), 68u);  // as many as Python 3.13's pickletools lists
}

// What pickletools.opcodes says of each protocol, by byte.
TEST(Opcode, FirstAppearsInTheProtocolThatPickletoolsNames) {
  std::string of[kHighestProtocol + 1];
  for (int code = 0; code < 256; ++code)
    if (const auto* info = opcode_info(static_cast<std::uint8_t>(code)))
      of[info->protocol] += static_cast<char>(code);
  EXPECT_EQ(of[0], "(.02FILNPRSVabcdgilpst");
  EXPECT_EQ(of[1], ")1GJKMQTUX]ehjoqru}");
  EXPECT_EQ(of[2], "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b");
  EXPECT_EQ(of[3], "BC");
  EXPECT_EQ(of[4], "\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95");
  EXPECT_EQ(of[5], "\x96\x97\x98");
}

}  // namespace
}  // namespace postflight
