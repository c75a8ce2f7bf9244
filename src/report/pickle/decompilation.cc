#include <optional>

#include <fmt/format.h>

#include "base/escape.h"
#include "json/writer.h"
#include "pickle/text/decompiler.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

DecompilerOptions decompiler_options(const PickleReportOptions& options) {
  DecompilerOptions made;
  if (options.all)
    made.text = 0;
  return made;
}

}  // namespace

void write_decompilation(std::string_view name, const PickleFile& file,
                         const PickleReportOptions& options,
                         const Terminal& terminal, Output& out) {
  for (const LoadedPickle& loaded : file.pickles) {
    out += terminal.styled(
        Style::kBold,
        "# " + escape_for_terminal(loaded.where.empty() ? name : loaded.where));
    out += "\n";
    const Result<> done = decompile(loaded.bytes, decompiler_options(options),
                                    Limits{}, [&out](std::string_view line) {
                                      out += escape_for_terminal(line);
                                      out += "\n";
                                    });
    if (!done)
      out += fmt::format("# {}: {}\n", terminal.styled(Style::kRed, "broken"),
                         escape_for_terminal(done.error().message()));
  }
}

void write_decompilation_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.pickle.decompilation/1");
  json.field("file", name);
  json.array("pickles");
  for (const LoadedPickle& loaded : file.pickles) {
    json.object();
    json.field("where", loaded.where);
    json.array("lines");
    const Result<> done =
        decompile(loaded.bytes, decompiler_options(options), Limits{},
                  [&json](std::string_view line) { json.value(line); });
    json.end();
    if (!done)
      json.field("error", done.error().message());
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
