#include "report/pickle/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "report/finding_text.h"
#include "report/pickle/text.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

constexpr std::size_t kNames = 12;       // shown of globals and calls
constexpr std::size_t kBeforeName = 20;  // columns of a row
constexpr std::size_t kLeastName = 10;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", count);
}

Style style_of(Safety safety) {
  switch (safety) {
    case Safety::kSafe:
      return Style::kGreen;
    case Safety::kUnknown:
    case Safety::kBroken:
      return Style::kYellow;
    default:
      return Style::kRed;
  }
}

std::string headline(const PickleFile& file, const SafetyVerdict& verdict,
                     const Terminal& terminal) {
  std::string rest;
  switch (verdict.safety()) {
    case Safety::kSafe:
      rest = file.worst() == Trust::kTorch
                 ? "plain data and torch's own rebuilding functions"
             : file.pickles.empty() && !file.format.empty()
                 ? std::string(file.format)
                 : "plain data";
      break;
    case Safety::kBroken:
      rest = "it is damaged; what could be read runs no code";
      break;
    default:
      rest = verdict.lead()->message;
  }
  const std::string_view word = safety_name(verdict.safety());
  const std::size_t width =
      terminal.width - std::min(terminal.width, word.size() + 2);
  return terminal.styled(style_of(verdict.safety()), word) + "  " +
         cut_to_width(escape_for_terminal(rest),
                      std::max<std::size_t>(width, 20), terminal.ellipsis());
}

// What was not looked into, and why; the rest is in the lists below.
void write_doubts(const SafetyVerdict& verdict, const Terminal& terminal,
                  Output& out) {
  constexpr std::string_view kWord = "unknown";
  constexpr std::size_t kIndent = 4;
  for (const Reason& reason : verdict.reasons()) {
    if (reason.safety != Safety::kUnknown)
      continue;
    std::string text = escape_for_terminal(reason.message);
    if (!reason.where.empty())
      text += fmt::format(" ({})", escape_for_terminal(reason.where));
    out += fmt::format(
        "  {}: {}\n", terminal.styled(Style::kYellow, kWord),
        wrapped(text, kWord.size() + kIndent, terminal.width, kIndent));
  }
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
  const SafetyVerdict verdict = file.verdict();
  out += headline(file, verdict, terminal) + "\n";
  out += fmt::format("  {}: {} {}\n", escape_for_terminal(name),
                     file.pickles.size(),
                     file.pickles.size() == 1 ? "pickle" : "pickles");
  write_doubts(verdict, terminal, out);
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
