#include "base/terminal.h"

#include "base/child_process.h"

#include <cstdlib>
#include <map>

#include <fcntl.h>
#include <sys/ioctl.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

using enum ColourChoice;

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end())
      return std::nullopt;
    return found->second;
  };
}

constexpr TerminalFacts kTerminal = {
    .stdout_is_terminal = true, .stderr_is_terminal = true, .columns = 120};
constexpr TerminalFacts kPipe = {};

TEST(Terminal, HasColourOnATerminal) {
  EXPECT_TRUE(Terminal::from(kTerminal, kAuto, environment_of({})).colour);
  EXPECT_FALSE(Terminal::from(kPipe, kAuto, environment_of({})).colour);
  EXPECT_FALSE(
      Terminal::from({.stderr_is_terminal = true}, kAuto, environment_of({}))
          .colour);
}

TEST(Terminal, HasNoColourWhenDumb) {
  const Terminal terminal =
      Terminal::from(kTerminal, kAuto, environment_of({{"TERM", "dumb"}}));
  EXPECT_FALSE(terminal.colour);
  EXPECT_TRUE(terminal.dumb);
}

TEST(Terminal, HeedsNoColorUnlessItIsEmpty) {
  EXPECT_FALSE(
      Terminal::from(kTerminal, kAuto, environment_of({{"NO_COLOR", "1"}}))
          .colour);
  EXPECT_TRUE(
      Terminal::from(kTerminal, kAuto, environment_of({{"NO_COLOR", ""}}))
          .colour);
}

TEST(Terminal, LetsTheChoiceBeatEverything) {
  EXPECT_TRUE(
      Terminal::from(kPipe, kAlways,
                     environment_of({{"NO_COLOR", "1"}, {"TERM", "dumb"}}))
          .colour);
  EXPECT_FALSE(Terminal::from(kTerminal, kNever, environment_of({})).colour);
}

std::size_t width_with(const TerminalFacts& facts, const std::string& columns) {
  return Terminal::from(facts, kAuto, environment_of({{"COLUMNS", columns}}))
      .width;
}

TEST(Terminal, IsAsWideAsColumnsOrMeasurementSay) {
  EXPECT_EQ(width_with(kTerminal, "100"), 100U);
  EXPECT_EQ(Terminal::from(kTerminal, kAuto, environment_of({})).width, 120U);
  EXPECT_EQ(Terminal::from(kPipe, kAuto, environment_of({})).width, 80U);
}

TEST(Terminal, IgnoresColumnsThatMakeNoSense) {
  for (const char* columns :
       {"", "0", "-5", "wide", "80x", "99999999999999999999", "1000000"})
    EXPECT_EQ(width_with(kTerminal, columns), 120U) << columns;
}

bool unicode_with(std::map<std::string, std::string> variables) {
  return Terminal::from(kTerminal, kAuto, environment_of(std::move(variables)))
      .unicode;
}

TEST(Terminal, ShowsUnicodeWhenTheLocaleDoes) {
  EXPECT_TRUE(unicode_with({{"LANG", "de_DE.UTF-8"}}));
  EXPECT_TRUE(unicode_with({{"LC_CTYPE", "C.utf8"}, {"LANG", "C"}}));
  EXPECT_TRUE(unicode_with({{"LC_ALL", ""}, {"LANG", "C.UTF-8"}}));
  EXPECT_FALSE(unicode_with({{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}));
  EXPECT_FALSE(unicode_with({{"LANG", "de_DE.ISO-8859-1"}}));
  EXPECT_FALSE(unicode_with({}));
}

TEST(Terminal, StylesTextOnlyInColour) {
  EXPECT_EQ(Terminal{.colour = true}.styled(Style::kRed, "HANG"),
            "\x1b[31mHANG\x1b[0m");
  EXPECT_EQ(Terminal{.colour = true}.styled(Style::kBold, "HANG"),
            "\x1b[1mHANG\x1b[0m");
  EXPECT_EQ(Terminal{}.styled(Style::kRed, "HANG"), "HANG");
}

TEST(Terminal, MeasuresARealTerminal) {
  const ChildProcess child([] {
    const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (controller < 0 || ::grantpt(controller) != 0 ||
        ::unlockpt(controller) != 0)
      return 1;
    const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
    const winsize size{
        .ws_row = 10, .ws_col = 33, .ws_xpixel = 0, .ws_ypixel = 0};
    if (::ioctl(terminal, TIOCSWINSZ, &size) != 0 ||
        ::dup2(terminal, STDERR_FILENO) < 0 ||
        ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO) < 0)
      return 2;
    ::unsetenv("COLUMNS");
    const Terminal found = Terminal::detect(kAuto);
    return found.width == 33 && found.stderr_is_terminal &&
                   !found.stdout_is_terminal && !found.colour
               ? 0
               : 3;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace postflight
