#include "report/pickle/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "report/finding_text.h"
#include "report/pickle/text.h"

namespace postflight {
namespace {

constexpr std::size_t kNames = 12;       // shown of globals and calls
constexpr std::size_t kBeforeName = 20;  // columns of a row
constexpr std::size_t kLeastName = 10;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", count);
}

// The call or import to lead with: the worst, and of those the first.
struct Lead {
  Trust trust = Trust::kPlain;
  std::string what;
  std::string reason;
};

Lead lead(const PickleFile& file) {
  Lead worst;
  for (const LoadedPickle& loaded : file.pickles) {
    for (const CallUse& use : loaded.audit.calls)
      if (use.trust > worst.trust)
        worst = {use.trust, "call " + use.callable, use.reason};
    for (const GlobalUse& use : loaded.audit.globals)
      if (use.trust > worst.trust)
        worst = {use.trust, fmt::format("import {}.{}", use.module, use.name),
                 use.reason};
  }
  return worst;
}

std::string headline(const PickleFile& file, const Terminal& terminal) {
  const Lead worst = lead(file);
  const auto line = [&terminal](Style style, std::string_view word,
                                std::string_view rest) {
    const std::size_t width =
        terminal.width - std::min(terminal.width, word.size() + 2);
    return terminal.styled(style, word) + "  " +
           cut_to_width(escape_for_terminal(rest),
                        std::max<std::size_t>(width, 20), terminal.ellipsis());
  };
  if (worst.trust == Trust::kDangerous)
    return line(
        Style::kRed, "DANGEROUS",
        fmt::format("loading it would {}, which {}", worst.what, worst.reason));
  if (worst.trust == Trust::kUnknown)
    return line(Style::kRed, "RUNS CODE",
                fmt::format("loading it would {}", worst.what));
  if (!file.intact())
    return line(Style::kYellow, "BROKEN",
                "it is damaged; what could be read runs no code");
  return line(Style::kGreen, "SAFE",
              worst.trust == Trust::kTorch
                  ? "plain data and torch's own rebuilding functions"
                  : "plain data");
}

Style style_of(Trust trust) {
  switch (trust) {
    case Trust::kDangerous:
      return Style::kRed;
    case Trust::kUnknown:
      return Style::kYellow;
    default:
      return Style::kDim;
  }
}

struct GlobalRow {
  Trust trust{};
  std::string name;
  std::string note;
};

void write_rows(std::string_view title, std::vector<GlobalRow> rows, bool all,
                const Terminal& terminal, Output& out) {
  if (rows.empty())
    return;
  // The worst first; among equals the order of appearance.
  std::ranges::stable_sort(rows, std::greater(), &GlobalRow::trust);
  const std::size_t shown =
      all || rows.size() <= kNames + 2 ? rows.size() : kNames;
  for (std::size_t i = 0; i < shown; ++i) {
    const GlobalRow& row = rows[i];
    const std::size_t taken = kBeforeName + 2 + display_width(row.note);
    const std::size_t room = terminal.width - std::min(terminal.width, taken);
    out += fmt::format(
        "  {:<8}{} {}  {}\n", i == 0 ? title : "",
        terminal.styled(style_of(row.trust),
                        fmt::format("{:<9}", trust_name(row.trust))),
        cut_to_width(row.name, std::max(room, kLeastName), terminal.ellipsis()),
        terminal.styled(Style::kDim, row.note));
  }
  if (shown < rows.size())
    out += fmt::format("          {} {} more (--all shows them)\n",
                       terminal.ellipsis(), rows.size() - shown);
}

void write_audit(const Audit& audit, bool all, const Terminal& terminal,
                 Output& out) {
  std::vector<GlobalRow> calls;
  for (const CallUse& use : audit.calls) {
    const bool touched = use.making == Making::kTouched;
    calls.push_back(
        {use.trust, escape_for_terminal(use.callable),
         fmt::format("{}{}{}", touched ? "changed, " : "", times(use.uses),
                     use.reason.empty() ? "" : "; " + use.reason)});
  }
  write_rows("calls", std::move(calls), all, terminal, out);

  std::vector<GlobalRow> globals;
  for (const GlobalUse& use : audit.globals)
    globals.push_back({use.trust,
                       escape_for_terminal(use.module + "." + use.name),
                       times(use.uses)});
  write_rows("imports", std::move(globals), all, terminal, out);
}

std::string place(const LoadedPickle& loaded) {
  std::string text =
      loaded.where.empty() ? "pickle" : escape_for_terminal(loaded.where);
  text += fmt::format("  protocol {}, {} bytes", loaded.pickle.protocol,
                      loaded.bytes.size());
  if (loaded.offset && *loaded.offset != 0)
    text += fmt::format(" at byte {}", *loaded.offset);
  return text;
}

}  // namespace

void write_pickle_report(std::string_view name, const PickleFile& file,
                         const PickleReportOptions& options,
                         const Terminal& terminal, Output& out) {
  out += headline(file, terminal) + "\n";
  out += fmt::format("  {}: {} {}\n", escape_for_terminal(name),
                     file.pickles.size(),
                     file.pickles.size() == 1 ? "pickle" : "pickles");
  write_findings(file.findings, terminal, out);
  for (const LoadedPickle& loaded : file.pickles) {
    out += "\n" + terminal.styled(Style::kBold, place(loaded)) + "\n";
    write_audit(loaded.audit, options.all, terminal, out);
    if (loaded.error) {
      out += fmt::format("  {}: {}\n", terminal.styled(Style::kRed, "broken"),
                         escape_for_terminal(*loaded.error));
      continue;
    }
    if (options.tree)
      write_pickle_text(loaded.pickle.root,
                        {.width = terminal.width,
                         .margin = 2,
                         .all = options.all,
                         .unicode = terminal.unicode},
                        out);
  }
}

}  // namespace postflight
