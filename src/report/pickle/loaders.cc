#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "json/writer.h"
#include "pickle/audit/readers.h"
#include "report/pickle/report.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::size_t kNamesShown = 12;

std::string title_of(const Reading& reading) {
  return fmt::format("  {:<36}", reading.title);
}

void write_reading(const Reading& reading, const Terminal& terminal,
                   Output& out) {
  out += title_of(reading);
  if (reading.refuses) {
    constexpr std::size_t kIndent = 38;
    out += terminal.styled(Style::kYellow, "refuses") + "  " +
           wrapped(escape_for_terminal(reading.why), kIndent + 9,
                   terminal.width, kIndent + 9);
  } else {
    out += fmt::format("{}  {} bytes", terminal.styled(Style::kGreen, "reads"),
                       reading.at);
  }
  out += "\n";
}

// Names that not all readers import or call stand under their reader.
void write_names(std::string_view title, const std::vector<std::string>& names,
                 const Terminal& terminal, Output& out) {
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i)
    out +=
        fmt::format("      {:<8}{}\n", i == 0 ? title : "",
                    cut_to_width(escape_for_terminal(names[i]),
                                 std::max<std::size_t>(terminal.width, 40) - 14,
                                 terminal.ellipsis()));
  if (names.size() > kNamesShown)
    out += fmt::format("              {} {} more\n", terminal.ellipsis(),
                       names.size() - kNamesShown);
}

}  // namespace

void write_loaders(std::string_view name, const PickleFile& file,
                   const Terminal& terminal, Output& out) {
  for (const LoadedPickle& loaded : file.pickles) {
    const Readings all = read_as_all(loaded.bytes, Limits{});
    out += terminal.styled(
        Style::kBold,
        escape_for_terminal(loaded.where.empty() ? name : loaded.where));
    out += all.differ ? "  readers see different things\n" : "\n";
    const Reading& first = all.readings.front();
    for (const Reading& reading : all.readings) {
      write_reading(reading, terminal, out);
      if (&reading != &first && reading.imports == first.imports &&
          reading.calls == first.calls)
        continue;
      write_names("imports", reading.imports, terminal, out);
      write_names("calls", reading.calls, terminal, out);
    }
    for (const Reason& difference : all.differences)
      out += fmt::format(
          "  {}: {}\n", terminal.styled(Style::kYellow, "differs"),
          wrapped(
              fmt::format("{} ({})", escape_for_terminal(difference.message),
                          escape_for_terminal(difference.where)),
              11, terminal.width, 4));
  }
}

void write_loaders_json(std::string_view name, const PickleFile& file,
                        Output& out) {
  JsonWriter json(out);
  json.begin("postflight.pickle.loaders/1");
  json.field("file", name);
  json.array("pickles");
  for (const LoadedPickle& loaded : file.pickles) {
    const Readings all = read_as_all(loaded.bytes, Limits{});
    json.object();
    json.field("where", loaded.where);
    json.field("differ", all.differ);
    json.array("differences");
    for (const Reason& difference : all.differences) {
      json.object();
      json.field("kind", difference.kind);
      json.field("message", difference.message);
      json.field("where", difference.where);
      json.end();
    }
    json.end();
    json.array("readers");
    for (const Reading& reading : all.readings) {
      json.object();
      json.field("reader", reading.reader);
      json.field("title", reading.title);
      json.field("refuses", reading.refuses);
      json.field("why", reading.why);
      json.field("end", reading.at);
      json.array("imports");
      for (const std::string& import : reading.imports)
        json.value(std::string_view(import));
      json.end();
      json.array("calls");
      for (const std::string& call : reading.calls)
        json.value(std::string_view(call));
      json.end();
      json.end();
    }
    json.end();
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
