#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "json/writer.h"
#include "pickle/text/disassembler.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

// How many bytes of an argument are decoded for display unless all are wanted:
// more than fit on a line, fewer than a storage has.
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
  JsonWriter json(out);
  json.begin("postflight.pickle.disassembly/1");
  json.field("file", name);
  json.array("pickles");
  for (const LoadedPickle& loaded : file.pickles) {
    json.object();
    json.field("where", loaded.where);
    json.array("instructions");
    Disassembler disassembler(loaded.bytes);
    std::optional<std::string> error;
    for (;;) {
      const Result<std::optional<Instruction>> next = disassembler.next();
      if (!next)
        error = next.error().message();
      if (!next || !*next)
        break;
      const Instruction& instruction = **next;
      json.object();
      json.field("offset", instruction.offset);
      json.field("size", instruction.size);
      json.field("name", instruction.info->name);
      json.field("argument", instruction.kind == Kind::kNone
                                 ? std::string()
                                 : argument_text(instruction));
      json.end();
    }
    json.end();
    if (error)
      json.field("error", *error);
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
