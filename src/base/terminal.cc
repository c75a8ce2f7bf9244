#include "base/terminal.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace postflight {

namespace {

constexpr std::size_t kMaxWidth = 10'000;

std::optional<std::size_t> measured_columns(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

std::optional<std::size_t> wished_columns(const Environment& environment) {
  const std::string text = environment("COLUMNS").value_or("");
  std::size_t columns = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), columns);
  if (failed != std::errc{} || end != text.data() + text.size() ||
      columns == 0 || columns > kMaxWidth)
    return std::nullopt;
  return columns;
}

bool locale_is_utf8(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = environment(name).value_or("");
    if (locale.empty())
      continue;
    for (char& letter : locale)
      letter =
          static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return locale.find("utf-8") != std::string::npos ||
           locale.find("utf8") != std::string::npos;
  }
  return false;
}

bool wants_colour(const Terminal& terminal, ColourChoice choice,
                  const Environment& environment) {
  switch (choice) {
    case ColourChoice::kAlways:
      return true;
    case ColourChoice::kNever:
      return false;
    case ColourChoice::kAuto:
      break;
  }
  return terminal.stdout_is_terminal && !terminal.dumb &&
         environment("NO_COLOR").value_or("").empty();
}

int code_of(Style style) {
  switch (style) {
    case Style::kBold:
      return 1;
    case Style::kDim:
      return 2;
    case Style::kRed:
      return 31;
    case Style::kGreen:
      return 32;
    case Style::kYellow:
      return 33;
    case Style::kCyan:
      return 36;
  }
  return 0;
}

}  // namespace

Terminal Terminal::detect(ColourChoice choice) {
  TerminalFacts facts{
      .stdout_is_terminal = ::isatty(STDOUT_FILENO) == 1,
      .stderr_is_terminal = ::isatty(STDERR_FILENO) == 1,
      .columns = measured_columns(STDOUT_FILENO),
  };
  if (!facts.columns)
    facts.columns = measured_columns(STDERR_FILENO);
  return from(facts, choice, process_environment());
}

Terminal Terminal::from(const TerminalFacts& facts, ColourChoice choice,
                        const Environment& environment) {
  Terminal terminal{
      .stdout_is_terminal = facts.stdout_is_terminal,
      .stderr_is_terminal = facts.stderr_is_terminal,
      .dumb = environment("TERM") == "dumb",
      .unicode = locale_is_utf8(environment),
  };
  terminal.colour = wants_colour(terminal, choice, environment);
  const std::optional<std::size_t> wished = wished_columns(environment);
  terminal.width = wished.value_or(facts.columns.value_or(terminal.width));
  return terminal;
}

std::string Terminal::styled(Style style, std::string_view text) const {
  if (!colour)
    return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

}  // namespace postflight
