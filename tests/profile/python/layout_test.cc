#include "profile/python/layout.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "profile/python/locator.h"

namespace postflight {
namespace {

std::string message(const Result<PythonLayout>& layout) {
  return layout ? "no error" : std::string(layout.error().message());
}

// A runtime that describes itself: every structure has 1000 bytes, and every
// field lies 8 bytes behind the one before.
std::vector<std::byte> description(std::uint64_t version) {
  std::vector<std::uint64_t> words(kDescribedBytes / 8, 48);
  std::memcpy(words.data(), "xdebugpy", 8);
  words[1] = version;
  words[2] = 0;
  const std::vector<std::size_t> structures =
      version >> 16 == 0x30d ? std::vector<std::size_t>{3, 6, 19, 28, 34}
                             : std::vector<std::size_t>{3, 6, 22, 31, 39};
  for (const std::size_t structure : structures) {
    words[structure] = 1000;
    for (std::size_t field = 1; field <= 5; ++field)
      words[structure + field] = 8 * field;
  }
  const Bytes bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

TEST(PythonLayout, KnowsVersions) {
  EXPECT_EQ(python_version(0x030b02f0), (PythonVersion{3, 11, 2}));
  EXPECT_EQ(version_text({3, 11, 2}), "3.11.2");
  EXPECT_EQ(version_in_name("/usr/lib/libpython3.9.so.1.0"),
            (PythonVersion{.major = 3, .minor = 9}));
  EXPECT_EQ(version_text({.major = 3, .minor = 9}), "3.9");
  EXPECT_EQ(version_in_name("/usr/bin/python"), std::nullopt);
}

TEST(PythonLayout, RefusesUnknownVersionsByName) {
  EXPECT_EQ(message(python_layout({3, 8, 0}, {})),
            "Python 3.8 is not supported; 3.9 to 3.14 are");
  EXPECT_EQ(message(python_layout({3, 15, 0}, {})),
            "Python 3.15 is not supported; 3.9 to 3.14 are");
}

TEST(PythonLayout, ReadsADescription) {
  for (const std::uint64_t version : {0x030d00f0U, 0x030e01f0U}) {
    const Result<PythonLayout> layout =
        python_layout(python_version(version), description(version));
    ASSERT_TRUE(layout) << message(layout);
    EXPECT_EQ(layout->runtime.interpreters, 16U);
    EXPECT_EQ(layout->thread.frame, 32U);
    EXPECT_EQ(layout->frame.previous, 8U);
    EXPECT_EQ(layout->frame.locals, 32U);
    EXPECT_EQ(layout->code.line_table, 32U);
    EXPECT_EQ(layout->tuple_items, 48U);
    EXPECT_EQ(layout->ascii_header, 48U);
    EXPECT_EQ(layout->tagged_code, version == 0x030e01f0U);
  }
}

TEST(PythonLayout, RefusesADescriptionThatCannotBe) {
  const PythonVersion version = {3, 13, 0};
  std::vector<std::byte> bytes = description(0x030d00f0);
  EXPECT_EQ(message(python_layout(version, Bytes(bytes).first(100))),
            "Python 3.13.0 has no _Py_DebugOffsets");
  bytes[0] = std::byte{'y'};
  EXPECT_EQ(message(python_layout(version, bytes)),
            "Python 3.13.0 has no _Py_DebugOffsets");
  bytes = description(0x030d01f0);
  EXPECT_EQ(message(python_layout(version, bytes)),
            "Python 3.13.0 has the _Py_DebugOffsets of Python 3.13.1");
  bytes = description(0x030d00f0);
  bytes[16] = std::byte{1};
  EXPECT_EQ(message(python_layout(version, bytes)),
            "free-threaded Python 3.13.0 is not supported");
  bytes = description(0x030d00f0);
  bytes[8 * 31 + 3] = std::byte{1};  // an instruction beyond its frame
  EXPECT_EQ(message(python_layout(version, bytes)),
            "Python 3.13.0 has implausible _Py_DebugOffsets");
}

}  // namespace
}  // namespace postflight
