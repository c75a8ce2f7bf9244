#include "cli/man_page.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/declared.h"

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

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option_names(option))
    names += (names.empty() ? "" : ", ") + name;
  const std::string value = option_value(option);
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(names),
                     value.empty() ? "" : " \\fI" + roff(value) + "\\fR",
                     roff(option.get_description()));
}

}  // namespace

std::string man_page(const CLI::App& program) {
  std::string page = fmt::format(
      ".TH POSTFLIGHT 1 \"\" \"postflight {}\" \"User Commands\"\n"
      ".SH NAME\npostflight \\- says what happened to a distributed PyTorch "
      "job\n.SH SYNOPSIS\n.B postflight\n.I COMMAND\n[\\fIOPTION\\fR]... "
      "[\\fIFILE\\fR]...\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff(POSTFLIGHT_VERSION), roff(description_of(program).sentence));
  for (const CLI::App* const command : runnable_commands(program)) {
    const Description description = description_of(*command);
    page +=
        fmt::format(".SS \"postflight {}\"\n{}\n", command_line_name(*command),
                    roff(description.sentence));
    for (const CLI::Option* const option : command->get_options())
      page += option_entry(*option);
    page += ".PP\nExamples:\n.nf\n";
    page += roff(description.examples);
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
