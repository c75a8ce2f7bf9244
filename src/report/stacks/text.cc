#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "report/finding_text.h"
#include "report/stacks/report.h"
#include "report/wrapped.h"
#include "stacks/stack_groups.h"

namespace postflight {
namespace {

std::string shown_place(std::span<const StackFrame> frames,
                        const Terminal& terminal) {
  return escape_for_terminal(place_text(frames, terminal.ellipsis()));
}

// "waits in read (dataset.py:88)"
std::string doing(const ThreadStack& thread, const Terminal& terminal) {
  const std::string_view verb =
      thread.state == ThreadState::kWaiting ? "waits in" : "is in";
  const bool runs = thread.state == ThreadState::kRunning;
  return fmt::format("{} {}{}", verb, shown_place(thread.frames, terminal),
                     thread.motion == Motion::kBusy    ? ", and moves"
                     : thread.motion != Motion::kStuck ? ""
                     : runs                            ? ", and runs there"
                                                       : ", stuck there");
}

std::string about(const ProcessStacks& process) {
  std::vector<std::string> parts;
  if (process.rank >= 0 && process.pid != 0)
    parts.push_back(fmt::format("process {}", process.pid));
  if (!process.command.empty())
    parts.push_back(process.command);
  if (!process.python.empty())
    parts.push_back("Python " + process.python);
  if (!process.host.empty())
    parts.push_back("on " + process.host);
  if (!process.source.empty() && process.source != process.name())
    parts.push_back("from " + process.source);
  return escape_for_terminal(fmt::format("{}", fmt::join(parts, ", ")));
}

void write_locals(const StackFrame& frame, std::size_t indent,
                  const Terminal& terminal, Output& out) {
  for (const LocalVariable& local : frame.locals)
    out += std::string(indent, ' ') +
           wrapped(escape_for_terminal(
                       fmt::format("{} = {}", local.name, local.value)),
                   indent, terminal.width, indent + 4) +
           "\n";
}

void write_thread(const ThreadStack& thread, const Terminal& terminal,
                  Output& out) {
  std::string title =
      thread.tid == 0 ? "thread" : fmt::format("thread {}", thread.tid);
  if (!thread.name.empty())
    title += fmt::format(" ({})", escape_for_terminal(thread.name));
  out += fmt::format("\n  {}", terminal.styled(Style::kBold, title));
  if (thread.state != ThreadState::kUnknown)
    out += fmt::format(", {}", thread_state_name(thread.state));
  if (thread.motion != Motion::kUnknown)
    out += thread.motion == Motion::kBusy ? ", busy: its stack changes"
           : thread.state == ThreadState::kRunning
               ? ", the same stack twice: a loop, or one long call"
               : ", stuck: the same stack twice";
  out += "\n";
  const StackFrame* const own = own_frame(thread.frames);
  for (const StackFrame& frame : thread.frames) {
    const std::string text = escape_for_terminal(frame_text(frame));
    out += fmt::format(
        "    {}\n", &frame == own ? terminal.styled(Style::kBold, text) : text);
    write_locals(frame, 6, terminal, out);
  }
  if (thread.frames.empty() && thread.trouble.empty())
    out += thread.python ? "    no Python frames\n" : "    no frames\n";
  if (!thread.trouble.empty())
    out += fmt::format("    {}\n", escape_for_terminal(thread.trouble));
}

void write_process(const ProcessStacks& process, const Terminal& terminal,
                   Output& out) {
  const ThreadStack* const main = process.main_thread();
  if (main != nullptr)
    write_thread(*main, terminal, out);
  for (const ThreadStack& thread : process.threads)
    if (&thread != main)
      write_thread(thread, terminal, out);
}

void write_tree(const StackSnapshot& snapshot,
                const std::vector<StackGroup>& groups, const Terminal& terminal,
                Output& out) {
  struct Row {
    std::string frame;
    std::string who;
  };
  std::vector<Row> rows;
  std::size_t widest = 0;
  constexpr std::size_t kDeepest = 15;
  for (const StackTreeLine& line : stack_tree(groups)) {
    Row row;
    row.frame = std::string(2 + 2 * std::min(line.depth, kDeepest), ' ') +
                escape_for_terminal(frame_text(line.frame));
    if (!line.processes.empty()) {
      row.who = processes_label(snapshot.processes, line.processes);
      widest = std::max(widest, display_width(row.frame));
    }
    rows.push_back(std::move(row));
  }
  out += "\n";
  for (const Row& row : rows) {
    out += row.frame;
    if (!row.who.empty())
      out += std::string(widest - display_width(row.frame) + 2, ' ') +
             terminal.styled(Style::kDim, row.who);
    out += "\n";
  }
}

std::string group_text(const StackSnapshot& snapshot, const StackGroup& group,
                       const Terminal& terminal) {
  const std::string who = processes_label(snapshot.processes, group.processes);
  return fmt::format("{} {} in {}", who,
                     group.processes.size() == 1 ? "is" : "are",
                     shown_place(group.frames, terminal));
}

// Most of them first, then who is elsewhere.
std::string headline_of(const StackSnapshot& snapshot,
                        const std::vector<StackGroup>& groups,
                        const Terminal& terminal) {
  constexpr std::size_t kMostNamed = 4;
  if (groups.empty())
    return "no process has a Python stack";
  std::string text = group_text(snapshot, groups.back(), terminal);
  for (std::size_t i = 0; i + 1 < groups.size() && i < kMostNamed; ++i)
    text += "; " + group_text(snapshot, groups[i], terminal);
  if (groups.size() > kMostNamed + 1)
    text += fmt::format("; and {} more places", groups.size() - kMostNamed - 1);
  return text;
}

// The locals of the user's code in the processes that are elsewhere than most,
// or in all if none is.
void write_locals_of_odd(const StackSnapshot& snapshot,
                         const std::vector<StackGroup>& groups,
                         const Terminal& terminal, Output& out) {
  constexpr std::size_t kMostShown = 4;
  const bool any_odd = std::ranges::any_of(groups, &StackGroup::odd);
  std::size_t shown = 0;
  for (const StackGroup& group : groups) {
    if (any_odd && !group.odd)
      continue;
    for (const std::size_t process : group.processes) {
      const ProcessStacks& one = snapshot.processes[process];
      const std::vector<StackFrame>& frames = one.main_thread()->frames;
      const StackFrame* const own = own_frame(frames);
      const StackFrame* const frame =
          own != nullptr ? own : python_frame(frames);
      if (frame == nullptr || frame->locals.empty())
        continue;
      if (++shown > kMostShown)
        continue;
      out += fmt::format(
          "\n  {}, {}\n",
          terminal.styled(Style::kBold, escape_for_terminal(one.name())),
          escape_for_terminal(frame_text(*frame)));
      write_locals(*frame, 4, terminal, out);
    }
  }
  if (shown > kMostShown)
    out += fmt::format("\n  and locals of {} more processes (--all)\n",
                       shown - kMostShown);
}

}  // namespace

void write_stacks(const StackSnapshot& snapshot,
                  const StacksReportOptions& options, const Terminal& terminal,
                  Output& out) {
  constexpr std::string_view kHead = "STACKS  ";
  const auto headline = [&](const std::string& text) {
    out += terminal.styled(Style::kBold, "STACKS") + "  " +
           wrapped(text, kHead.size(), terminal.width, kHead.size()) + "\n";
  };
  if (snapshot.processes.size() == 1) {
    const ProcessStacks& process = snapshot.processes[0];
    const ThreadStack* const main = process.main_thread();
    headline(fmt::format(
        "{} {}", escape_for_terminal(process.name()),
        main == nullptr ? "has no Python thread" : doing(*main, terminal)));
    if (const std::string text = about(process); !text.empty())
      out += "  " + wrapped(text, 2, terminal.width, 4) + "\n";
    write_process(process, terminal, out);
  } else {
    const std::vector<StackGroup> groups = group_stacks(snapshot.processes);
    headline(headline_of(snapshot, groups, terminal));
    write_tree(snapshot, groups, terminal, out);
    std::size_t threads = 0;
    for (const ProcessStacks& process : snapshot.processes) {
      threads += process.threads.size();
      if (!options.all)
        continue;
      out += fmt::format(
          "\n{}: {}\n",
          terminal.styled(Style::kBold, escape_for_terminal(process.name())),
          about(process));
      write_process(process, terminal, out);
    }
    if (!options.all)
      write_locals_of_odd(snapshot, groups, terminal, out);
    if (!options.all)
      out += fmt::format(
          "\n  {} processes with {} threads; these are their main threads "
          "(--all)\n",
          snapshot.processes.size(), threads);
  }
  if (!snapshot.findings.empty())
    out += "\n";
  write_findings(snapshot.findings, terminal, out);
}

}  // namespace postflight
