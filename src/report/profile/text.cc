#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"
#include "profile/log/folding.h"
#include "profile/log/lines.h"
#include "report/finding_text.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

constexpr std::size_t kMostProcesses = 6;

std::string duration(std::uint64_t ns) {
  return human_duration(std::chrono::nanoseconds(ns));
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  const double percent = whole == 0 ? 0.0
                                    : 100.0 * static_cast<double>(part) /
                                          static_cast<double>(whole);
  return fmt::format("{:.1f} %", percent);
}

std::string note(const Profile& profile, std::string_view key) {
  const auto found = profile.notes.find(key);
  return found == profile.notes.end() ? std::string()
                                      : escape_for_terminal(found->second);
}

std::string shortened(std::string text, std::size_t most) {
  if (display_width(text) <= most)
    return text;
  while (!text.empty() && display_width(text) > most - 3)
    text.pop_back();
  return text + "...";
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// "torch 2.1 s, numpy 400 ms": the modules whose import took longest.
std::string costliest(const std::vector<ImportTime>& imports) {
  constexpr std::size_t kMostModules = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(imports.size(), kMostModules); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ",
                        escape_for_terminal(imports[i].module),
                        duration(imports[i].ns));
  return text;
}

// "Dynamo 1.2 s, Inductor 600 ms, 2 compilers 1.1 s, 1 recompile".
std::string compile_parts(const CompileTime& time) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string_view name, std::uint64_t ns) {
    if (ns != 0)
      parts.push_back(fmt::format("{} {}", name, duration(ns)));
  };
  add("Dynamo", time.dynamo_ns);
  add("AOT autograd", time.aot_ns);
  add("Inductor", time.inductor_ns);
  add(time.compilers == 0 ? "compilers"
                          : fmt::format("{} compiler{}", time.compilers,
                                        time.compilers == 1 ? "" : "s"),
      time.compilers_ns);
  if (time.recompiles != 0)
    parts.push_back(fmt::format("{} recompile{}", time.recompiles,
                                time.recompiles == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

constexpr std::string_view kGarbageFrame = "<garbage collection>";

// The function below which most garbage is collected: it makes the objects.
std::string garbage_maker(const Profile& profile) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> makers;
  for (const ProfileSample& sample : profile.samples) {
    const auto frame_of = [&profile](std::uint32_t stack) -> const auto& {
      return profile.frames[profile.stacks[stack].frame];
    };
    if (profile.texts[frame_of(sample.stack).name] != kGarbageFrame)
      continue;
    std::uint32_t at = profile.stacks[sample.stack].parent;
    // What makes a named tuple.
    while (at != 0 && profile.texts[frame_of(at).name] == "<lambda>" &&
           profile.texts[frame_of(at).file] == "<string>")
      at = profile.stacks[at].parent;
    if (at != 0)
      makers[{frame_of(at).name, frame_of(at).file}] += sample.weight_ns;
  }
  const auto most = std::ranges::max_element(
      makers, {}, [](const auto& maker) { return maker.second; });
  if (most == makers.end())
    return {};
  const auto& [name, file] = most->first;
  return escape_for_terminal(fmt::format(
      "mostly in {}  {}", profile.texts[name], file_name(profile.texts[file])));
}

// What is said of the rows that are no functions.
std::string parts_of(const FoldedProfile& folded, std::string_view row) {
  if (row == kImportFrame)
    return costliest(folded.imports);
  if (row == kGarbageFrame)
    return garbage_maker(folded.profile);
  for (const CompileTime& time : folded.compilations)
    if (row.starts_with(kCompileFrame) &&
        row.substr(std::string_view(kCompileFrame).size()) ==
            (time.function.empty() ? "" : " " + time.function))
      return compile_parts(time);
  return {};
}

std::string place(const Profile& profile, const FunctionTime& function) {
  std::string text = file_name(profile.texts[function.file]);
  if (!text.empty() && function.line != 0)
    text += fmt::format(":{}", function.line);
  return escape_for_terminal(text);
}

// How long the run took; 0 if it was not recorded.
std::uint64_t elapsed_ns(const Profile& profile) {
  const std::string text = note(profile, "elapsed_ns");
  std::uint64_t ns = 0;
  std::from_chars(text.data(), text.data() + text.size(), ns);
  return ns;
}

// In wall time, what threads other than the main one did.
struct OtherThread {
  std::uint32_t thread = 0;
  std::uint64_t ns = 0;
  std::uint64_t waiting_ns = 0;
  std::map<std::uint32_t, std::uint64_t> by_stack = {};
};

// Takes their samples out of the profile, unless there are no others.
std::vector<OtherThread> take_others(Profile& profile) {
  const std::vector<bool> main = main_threads(profile);
  const auto is_main = [&main](const ProfileSample& sample) {
    return bool{main[sample.thread]};
  };
  if (std::ranges::none_of(profile.samples, is_main))
    return {};
  std::map<std::pair<pid_t, pid_t>, OtherThread> others;
  for (const ProfileSample& sample : profile.samples) {
    if (is_main(sample))
      continue;
    const ProfileThread& thread = profile.threads[sample.thread];
    OtherThread& other = others[{thread.pid, thread.tid}];
    other.thread = sample.thread;
    other.ns += sample.weight_ns;
    other.waiting_ns += sample.flags.waiting ? sample.weight_ns : 0;
    other.by_stack[sample.stack] += sample.weight_ns;
  }
  std::erase_if(profile.samples, std::not_fn(is_main));
  std::vector<OtherThread> sorted;
  for (auto& [ids, other] : others)
    sorted.push_back(std::move(other));
  std::ranges::stable_sort(
      sorted, std::greater<>(),
      [](const OtherThread& other) { return other.ns - other.waiting_ns; });
  return sorted;
}

void write_others(const Profile& profile,
                  const std::vector<OtherThread>& others, Output& out) {
  if (others.empty())
    return;
  out += "\n     time  waiting  other thread\n";
  const std::size_t count = std::min(others.size(), kMostProcesses);
  for (std::size_t i = 0; i < count; ++i) {
    const OtherThread& other = others[i];
    const ProfileThread& thread = profile.threads[other.thread];
    const auto most = std::ranges::max_element(
        other.by_stack, {}, [](const auto& one) { return one.second; });
    const std::uint32_t stack = most->first;
    out += fmt::format(
        "  {:>7}  {:>7}  {} {}{}\n", duration(other.ns),
        share(other.waiting_ns, other.ns), thread.tid,
        escape_for_terminal(profile.texts[thread.name]),
        stack == 0
            ? ""
            : ", mostly in " +
                  frame_text(profile,
                             profile.frames[profile.stacks[stack].frame]));
  }
  if (count < others.size())
    out += fmt::format("  and {} more (--all)\n", others.size() - count);
}

// Time of the interpreter itself, which no line of the program explains.
bool is_interpreters(const Profile& profile, const FunctionTime& function) {
  const std::string_view name = profile.texts[function.name];
  return function.kind == FrameKind::kMarker &&
         (name == kGarbageFrame || name == "<python ends>" ||
          name == "<python starts>");
}

std::string headline(const Profile& profile, const ProfileSummary& summary,
                     const std::vector<OtherThread>& others) {
  if (summary.spent.samples == 0)
    return !profile.findings.empty()
               ? "PROFILE  no samples could be read; the file is damaged"
           : note(profile, "mode") == "wall"
               ? "PROFILE  no samples: the program did not run long enough"
               : "PROFILE  no samples: the program used no CPU time";
  const bool wall = note(profile, "mode") == "wall";
  std::string text =
      fmt::format("PROFILE  {} of {} in {} samples", duration(summary.spent.ns),
                  !wall            ? "CPU time"
                  : others.empty() ? "thread time"
                                   : "the main thread's time",
                  summary.spent.samples);
  // The first row, and what the program itself spends most on.
  for (std::string_view between = "; ";
       const FunctionTime& row : summary.functions) {
    text +=
        fmt::format("{}{} in {}", between, share(row.self.ns, summary.spent.ns),
                    escape_for_terminal(profile.texts[row.name]));
    if (const std::string where = place(profile, row); !where.empty())
      text += fmt::format(" ({})", where);
    if (!is_interpreters(profile, row))
      break;
    between = ", ";
  }
  return text;
}

// A program that mostly waits is not explained by its CPU time.
void write_idleness(const Profile& profile, const ProfileSummary& summary,
                    Output& out) {
  constexpr std::uint64_t kLongEnough = 1'000'000'000;
  constexpr std::uint64_t kIdleFactor = 10;
  const std::uint64_t elapsed = elapsed_ns(profile);
  const bool idle =
      elapsed >= kLongEnough && summary.spent.ns < elapsed / kIdleFactor;
  if (note(profile, "mode") == "wall" || (summary.spent.samples != 0 && !idle))
    return;
  out += fmt::format(
      "  waiting  it used the CPU for {} of {}; --mode wall shows where it "
      "waits\n",
      duration(summary.spent.ns),
      elapsed == 0 ? "its time" : duration(elapsed));
}

void write_functions(const FoldedProfile& folded, const ProfileSummary& summary,
                     const ProfileReportOptions& options, Output& out) {
  const Profile& profile = folded.profile;
  const bool waits = summary.waiting.samples != 0;
  out += waits ? "\n     self    total  waiting  function\n"
               : "\n     self    total  function\n";
  const std::size_t count = std::min(options.top, summary.functions.size());
  for (std::size_t i = 0; i < count; ++i) {
    const FunctionTime& function = summary.functions[i];
    const std::string& name = profile.texts[function.name];
    std::string line =
        fmt::format("  {:>7}  {:>7}", share(function.self.ns, summary.spent.ns),
                    share(function.total.ns, summary.spent.ns));
    // The share of the whole in which it waited itself.
    if (waits)
      line += fmt::format("  {:>7}",
                          share(function.self.waiting_ns, summary.spent.ns));
    line += "  " + escape_for_terminal(name);
    const std::string parts = function.kind == FrameKind::kMarker
                                  ? parts_of(folded, name)
                                  : std::string();
    const std::string where = parts.empty() ? place(profile, function) : parts;
    if (!where.empty())
      line += "  " + options.terminal.styled(Style::kDim, where);
    out += line + "\n";
  }
  if (count < summary.functions.size())
    out += fmt::format("  and {} more\n", summary.functions.size() - count);
}

// Of CPU time, what was not Python.
void write_places(const Profile& profile, const ProfileSummary& summary,
                  Output& out) {
  std::uint64_t library = 0;
  std::uint64_t gil = 0;
  std::uint64_t known = 0;
  for (const ProfileSample& sample : profile.samples) {
    library += sample.flags.library ? sample.weight_ns - sample.system_ns : 0;
    gil += sample.flags.gil ? sample.weight_ns : 0;
    known += sample.flags.gil || sample.flags.no_gil ? sample.weight_ns : 0;
  }
  std::string text;
  const auto add = [&text](std::string_view what, std::uint64_t part,
                           std::uint64_t whole) {
    if (part != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          share(part, whole), what);
  };
  add("in the kernel", summary.spent.system_ns, summary.spent.ns);
  add("in native libraries", library, summary.spent.ns);
  add("with the GIL", gil, known);
  if (!text.empty())
    out += fmt::format("  {}\n", text);
}

void write_lines(const Profile& profile, const ProfileSummary& summary,
                 const ProfileReportOptions& options, Output& out) {
  const std::vector<LineTime> lines = lines_of(profile);
  out += "\n     time   python   native   system  line\n";
  const std::size_t count = std::min(options.top, lines.size());
  for (std::size_t i = 0; i < count; ++i) {
    const LineTime& line = lines[i];
    out += fmt::format(
        "  {:>7}  {:>7}  {:>7}  {:>7}  {}:{}  {}\n",
        share(line.ns, summary.spent.ns),
        share(line.interpreter_ns, summary.spent.ns),
        share(line.library_ns, summary.spent.ns),
        share(line.system_ns, summary.spent.ns),
        escape_for_terminal(file_name(profile.texts[line.file])), line.line,
        options.terminal.styled(
            Style::kDim, escape_for_terminal(profile.texts[line.function])));
  }
  if (count < lines.size())
    out += fmt::format("  and {} more\n", lines.size() - count);
}

void write_phases(const Profile& profile, const ProfileSummary& summary,
                  Output& out) {
  out += "\n     time    share  phase\n";
  for (const PhaseTime& phase : summary.phases)
    out += fmt::format("  {:>7}  {:>7}  {}\n", duration(phase.spent.ns),
                       share(phase.spent.ns, summary.spent.ns),
                       escape_for_terminal(profile.phase_name(phase.phase)));
}

void write_ranks(const ProfileSummary& summary, Output& out) {
  if (summary.ranks.size() < 2)
    return;
  out += "\n     time    share  rank\n";
  for (const RankTime& rank : summary.ranks)
    out += fmt::format(
        "  {:>7}  {:>7}  {}\n", duration(rank.spent.ns),
        share(rank.spent.ns, summary.spent.ns),
        rank.rank < 0 ? std::string("none") : std::to_string(rank.rank));
}

// What each process has used by the kernel's count, beside what was sampled.
void write_processes(const Profile& profile, Output& out) {
  if (profile.processes.empty())
    return;
  std::vector<const ProfileProcess*> most;
  ProfileProcess others;
  for (const ProfileProcess& process : profile.processes)
    most.push_back(&process);
  const auto used = [](const ProfileProcess* process) {
    return process->user_ns + process->system_ns;
  };
  std::ranges::stable_sort(most, std::greater<>(), used);
  // Wall time has nothing to do with it.
  const bool wall = note(profile, "mode") == "wall";
  out += wall ? "\n     used     user   system  process\n"
              : "\n  sampled       used     user   system  process\n";
  const auto write = [&out, wall](const ProfileProcess& process,
                                  std::string_view name) {
    if (!wall)
      out += fmt::format("  {:>7}  ", duration(process.sampled_ns));
    out += fmt::format("  {:>7}  {:>7}  {:>7}  {}\n",
                       duration(process.user_ns + process.system_ns),
                       duration(process.user_ns), duration(process.system_ns),
                       name);
  };
  for (std::size_t i = 0; i < most.size(); ++i) {
    if (i >= kMostProcesses) {
      others.user_ns += most[i]->user_ns;
      others.system_ns += most[i]->system_ns;
      others.sampled_ns += most[i]->sampled_ns;
      continue;
    }
    std::string name = fmt::format(
        "{} {}", most[i]->pid,
        shortened(escape_for_terminal(profile.texts[most[i]->command]), 36));
    if (most[i]->why != 0)
      name += fmt::format("\n{:>42}{}", "",
                          escape_for_terminal(profile.texts[most[i]->why]));
    write(*most[i], name);
  }
  if (most.size() > kMostProcesses)
    write(others, fmt::format("{} others", most.size() - kMostProcesses));
}

// The counters of a log and how they are shown, in this order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5>
    kCounters = {{{"samples", "taken"},
                  {"lost", "lost"},
                  {"torn", "torn"},
                  {"cut", "truncated"},
                  {"unreadable", "unreadable"}}};

void write_conditions(const Profile& profile, Output& out) {
  std::string line = "\n  samples";
  bool first = true;
  for (const auto& [key, label] : kCounters) {
    const auto count = profile.counters.find(key);
    if (count == profile.counters.end())
      continue;
    line += fmt::format("{} {} {}", first ? "" : ",", count->second, label);
    first = false;
  }
  out += line + "\n";
  const std::string engine = note(profile, "engine");
  if (engine.empty())
    return;
  out += fmt::format("  engine  {}, {} Hz, {} time", engine,
                     note(profile, "rate"), note(profile, "mode"));
  if (const std::string python = note(profile, "python"); !python.empty())
    out += ", Python " + python;
  out += "\n";
  if (const std::string why = note(profile, "engine_why"); !why.empty())
    out += fmt::format("          {}\n", why);
}

}  // namespace

void write_profile_text(const Profile& whole,
                        const ProfileReportOptions& options, Output& out) {
  FoldedProfile folded =
      options.all ? FoldedProfile{.profile = whole} : fold(whole);
  const std::vector<OtherThread> others =
      !options.all && note(whole, "mode") == "wall"
          ? take_others(folded.profile)
          : std::vector<OtherThread>();
  const Profile& profile = folded.profile;
  const ProfileSummary summary = summarise(profile);
  const Terminal& terminal = options.terminal;
  out +=
      terminal.styled(Style::kBold, headline(profile, summary, others)) + "\n";
  write_idleness(profile, summary, out);
  if (summary.spent.samples != 0) {
    if (summary.waiting.samples != 0)
      out += fmt::format("  waiting  {}\n",
                         share(summary.waiting.ns, summary.spent.ns));
    write_places(profile, summary, out);
    if (folded.idle_threads != 0)
      out += fmt::format(
          "  idle     {} threads that only waited are left out (--all)\n",
          folded.idle_threads);
    if (options.lines)
      write_lines(profile, summary, options, out);
    else
      write_functions(folded, summary, options, out);
    write_others(profile, others, out);
    write_phases(profile, summary, out);
    write_ranks(summary, out);
  }
  write_processes(profile, out);
  write_conditions(profile, out);
  write_findings(profile.findings, terminal, out);
  if (options.files.empty())
    return;
  out += "\nNext: postflight profile report";
  for (const std::string& file : options.files)
    out += " " + shell_quoted(file);
  out += " --to speedscope > profile.json\n";
}

}  // namespace postflight
