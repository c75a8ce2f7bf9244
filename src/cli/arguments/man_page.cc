#include "cli/arguments/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/arguments/help_text.h"

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

std::string parameter_entry(const Parameter& parameter) {
  return fmt::format(
      ".TP\n\\fB{}\\fR{}\n{}\n",
      roff(fmt::format("{}", fmt::join(parameter.names, ", "))),
      parameter.value.empty() ? "" : " \\fI" + roff(parameter.value) + "\\fR",
      roff(parameter.help));
}

}  // namespace

std::string man_page(const Command& program) {
  std::string page = fmt::format(
      ".TH POSTFLIGHT 1 \"\" \"postflight {}\" \"User Commands\"\n"
      ".SH NAME\npostflight \\- says what happened to a distributed PyTorch "
      "job\n.SH SYNOPSIS\n.B postflight\n.I COMMAND\n[\\fIOPTION\\fR]... "
      "[\\fIFILE\\fR]...\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff(POSTFLIGHT_VERSION), roff(program.sentence));
  for (const Command* const command : runnable_commands(program)) {
    page += fmt::format(".SS \"postflight {}\"\n{}\n", command->path,
                        roff(command->sentence));
    for (const Parameter& parameter : command->parameters)
      page += parameter_entry(parameter);
    page += fmt::format(".PP\nExamples:\n.nf\n{}.fi\n",
                        roff(examples_text(command->examples)));
  }
  page +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\nno problem found\n"
      ".TP\n.B 1\na problem was found\n"
      ".TP\n.B 2\nusage error or unreadable input\n"
      ".TP\n.B 130\ninterrupted\n"
      ".SH ENVIRONMENT\n"
      ".TP\n.B NO_COLOR\nif not empty, no colour unless \\-\\-color=always\n"
      ".TP\n.B COLUMNS\nthe width of the output\n"
      ".TP\n.B PAGER\nthe program that shows the output of entries in a "
      "terminal (default: less); none if empty or cat\n"
      ".TP\n.B LESS\noptions of less (default: FRX)\n"
      ".TP\n.B POSTFLIGHT_KEY\nthe key for encrypted data, 64 hexadecimal "
      "digits; \\-\\-key\\-file overrides it\n";
  return page;
}

}  // namespace postflight
