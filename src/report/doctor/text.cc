#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "report/doctor/report.h"
#include "report/finding_text.h"
#include "report/wrapped.h"

namespace postflight {
namespace {

std::string examination_headline(const Examination& examination) {
  const auto count = [&](Severity severity) {
    return std::ranges::count(examination.findings, severity,
                              &Finding::severity);
  };
  const auto errors = count(Severity::kError);
  const auto warnings = count(Severity::kWarning);
  if (errors == 0 && warnings == 0)
    return "OK  if this job hangs, it leaves the dumps that trace needs";
  std::string text = errors > 0 ? "FAULTY  " : "CHECK  ";
  if (errors > 0)
    text += fmt::format("{} error{}", errors, errors == 1 ? "" : "s");
  if (warnings > 0)
    text += fmt::format("{}{} warning{}", errors > 0 ? ", " : "", warnings,
                        warnings == 1 ? "" : "s");
  return text;
}

void write_settings(const Examination& examination, bool all,
                    const Terminal& terminal, Output& out) {
  struct Row {
    std::string setting;
    std::string_view meaning;
    bool is_set;
  };
  std::vector<Row> rows;
  std::size_t widest = 0;
  for (const Setting& setting : examination.settings) {
    if (!setting.value && !all)
      continue;
    const std::string shown =
        setting.value ? fmt::format("{}={}", setting.set_as,
                                    escape_for_terminal(*setting.value))
                      : fmt::format("{} ({})", setting.traits->name,
                                    setting.traits->unset);
    widest = std::max(widest, display_width(shown));
    rows.push_back({shown, setting.traits->meaning, setting.value.has_value()});
  }
  if (rows.empty()) {
    out += "\n  no variable of the flight recorder is set (--all)\n";
    return;
  }
  // Beside the settings there has to be room for what they mean.
  constexpr std::size_t kWidest = 48;
  constexpr std::size_t kMeaning = 26;
  widest = std::min(
      {widest, kWidest,
       terminal.width > kMeaning ? terminal.width - kMeaning : std::size_t{0}});
  out += all ? "\n  settings, and in brackets what torch does without\n"
             : "\n  settings\n";
  for (const Row& row : rows) {
    const std::size_t used = display_width(row.setting);
    // A long value has its meaning below.
    const std::string gap = used <= widest
                                ? std::string(widest - used + 2, ' ')
                                : "\n" + std::string(widest + 6, ' ');
    out += fmt::format(
        "    {}{}{}\n",
        row.is_set ? row.setting : terminal.styled(Style::kDim, row.setting),
        gap, wrapped(row.meaning, widest + 6, terminal.width, widest + 6));
  }
}

}  // namespace

void write_examination(const Examination& examination, bool all,
                       const Terminal& terminal, Output& out) {
  out += terminal.styled(Style::kBold, examination_headline(examination));
  out += fmt::format("\n  {}\n", escape_for_terminal(examination.source));
  if (!examination.findings.empty())
    out += "\n";
  // Most messages name the variable themselves.
  std::vector<Finding> findings = examination.findings;
  for (Finding& finding : findings)
    if (finding.message.find(finding.where) != std::string::npos)
      finding.where.clear();
  write_findings(findings, terminal, out);
  write_settings(examination, all, terminal, out);
  if (examination.folder) {
    const DumpFolder& folder = *examination.folder;
    out += fmt::format(
        "\n  dumps     {}: {}{}\n", escape_for_terminal(folder.path),
        !folder.exists     ? "does not exist yet"
        : !folder.writable ? "not writable"
                           : "writable",
        folder.file_system.empty() ? "" : ", " + folder.file_system);
  } else {
    out += "\n  dumps     where depends on the job's environment\n";
  }
  if (examination.ring)
    out += fmt::format("  ring      {} in {} entries of rank {}{}\n",
                       ring_duration(*examination.ring),
                       examination.ring->entries, examination.ring->rank,
                       examination.ring->wrapped
                           ? ", the shortest of those that wrapped"
                           : "; nothing was overwritten");
  out += "  profiler  " +
         wrapped(fmt::format("launched programs by {}; attaches to {}",
                             examination.profiler.launch(),
                             examination.profiler.attach()),
                 12, terminal.width, 12) +
         "\n";
}

}  // namespace postflight
