#include "cli/arguments/man_page.h"

#include <fmt/format.h>

namespace postflight {
namespace {

// Text in which roff sees no request and no special hyphen.
std::string roff(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\''))
      out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_line_start = c == '\n';
  }
  return out;
}

std::string option_entry(const DeclaredOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + name;
  return fmt::format(
      ".TP\n\\fB{}\\fR{}\n{}\n", roff(names),
      option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR",
      roff(option.help));
}

}  // namespace

std::string man_page(const DeclaredCommand& program) {
  std::string page = fmt::format(
      ".TH POSTFLIGHT 1 \"\" \"postflight {}\" \"User Commands\"\n"
      ".SH NAME\npostflight \\- says what happened to a distributed PyTorch "
      "job\n.SH SYNOPSIS\n.B postflight\n.I COMMAND\n[\\fIOPTION\\fR]... "
      "[\\fIFILE\\fR]...\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff(POSTFLIGHT_VERSION), roff(program.sentence));
  for (const DeclaredCommand* const command : runnable_commands(program)) {
    page += fmt::format(".SS \"postflight {}\"\n{}\n", command->called,
                        roff(command->sentence));
    for (const DeclaredOption& option : command->options)
      page += option_entry(option);
    page += ".PP\nExamples:\n.nf\n";
    page += roff(command->examples);
    page += "\n.fi\n";
  }
  page +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\nlooked, and all is well\n"
      ".TP\n.B 1\nlooked, and found a problem\n"
      ".TP\n.B 2\ncould not look: wrong usage, or nothing readable\n"
      ".TP\n.B 130\ninterrupted\n"
      ".SH ENVIRONMENT\n"
      ".TP\n.B NO_COLOR\nif not empty, no colour unless \\-\\-color=always\n"
      ".TP\n.B COLUMNS\nthe width to lay the answer out for\n";
  return page;
}

}  // namespace postflight
