#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "pickle/disassembler.h"
#include "report/finding_text.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

// How many bytes of an argument are decoded for display unless all are wanted:
// more than a line holds, less than a storage.
constexpr std::size_t kShownArgument = 400;

std::string shown_argument(const Instruction& instruction, bool all) {
  if (all || instruction.text.size() <= kShownArgument)
    return argument_text(instruction);
  Instruction shortened = instruction;
  shortened.text = instruction.text.substr(0, kShownArgument);
  return argument_text(shortened);
}

}  // namespace

void write_disassembly(std::string_view name, const PickleFile& file,
                       const PickleReportOptions& options,
                       const Terminal& terminal, Output& out) {
  for (const LoadedPickle& loaded : file.pickles) {
    out += terminal.styled(
        Style::kBold,
        escape_for_terminal(loaded.where.empty() ? name : loaded.where));
    out += "\n";
    Disassembler disassembler(loaded.bytes);
    for (;;) {
      const Result<std::optional<Instruction>> next = disassembler.next();
      if (!next) {
        out += fmt::format("  {}: {}\n", terminal.styled(Style::kRed, "broken"),
                           escape_for_terminal(next.error().message()));
        break;
      }
      if (!*next)
        break;
      const Instruction& instruction = **next;
      if (instruction.kind == Kind::kNone) {  // half of them: worth some speed
        out += fmt::format(FMT_COMPILE("{:>8}: {}\n"), instruction.offset,
                           instruction.info->name);
        continue;
      }
      const std::string line = fmt::format(
          "{:>8}: {:<16} {}", instruction.offset, instruction.info->name,
          shown_argument(instruction, options.all));
      // No character takes more columns than bytes.
      if (options.all || line.size() <= terminal.width)
        out += line;
      else
        out += cut_to_width(line, terminal.width, terminal.ellipsis());
      out += "\n";
    }
  }
}

void write_disassembly_json(std::string_view name, const PickleFile& file,
                            Output& out) {
  out += "{\"schema\":\"postflight.pickle.disassembly/1\",";
  write_json_field("file", name, out);
  out += ",\"pickles\":[";
  bool first_pickle = true;
  for (const LoadedPickle& loaded : file.pickles) {
    out += first_pickle ? "{" : ",{";
    first_pickle = false;
    write_json_field("where", loaded.where, out);
    out += ",\"instructions\":[";
    Disassembler disassembler(loaded.bytes);
    std::string error;
    for (bool first = true;; first = false) {
      const Result<std::optional<Instruction>> next = disassembler.next();
      if (!next)
        error = std::string(next.error().message());
      if (!next || !*next)
        break;
      const Instruction& instruction = **next;
      out += fmt::format("{}{{\"offset\":{},\"size\":{},\"name\":\"{}\",",
                         first ? "" : ",", instruction.offset, instruction.size,
                         instruction.info->name);
      if (instruction.kind == Kind::kNone)
        out += "\"argument\":\"\"";
      else
        write_json_field("argument", argument_text(instruction), out);
      out += "}";
    }
    out += "]";
    if (!error.empty()) {
      out += ",";
      write_json_field("error", error, out);
    }
    out += "}";
  }
  out += "]}\n";
}

}  // namespace postflight
