// Collapsed stacks, as flamegraph.pl reads them.

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/escape.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

// A semicolon would begin another frame.
std::string without_semicolons(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ';')
      result += "\\x3b";
    else
      result += c;
  }
  return result;
}

}  // namespace

void write_profile_collapsed(const Profile& profile,
                             const ProfileReportOptions& options, Output& out) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>,
           std::uint64_t>
      times;
  // A thread that was given another name is shown by the last.
  std::map<std::tuple<std::int32_t, pid_t, pid_t, std::uint32_t>, std::uint32_t>
      last;
  const auto identity = [&profile](std::uint32_t number) {
    const ProfileThread& thread = profile.threads[number];
    return std::tuple(thread.rank, thread.pid, thread.tid, thread.process);
  };
  for (std::uint32_t i = 0; i < profile.threads.size(); ++i)
    last[identity(i)] = i;
  for (const ProfileSample& sample : profile.samples)
    times[{last[identity(sample.thread)], options.phases ? sample.phase : 0,
           sample.stack}] += sample.weight_ns;
  for (const auto& [key, ns] : times) {
    const auto& [number, phase, stack] = key;
    const ProfileThread& thread = profile.threads[number];
    std::string line = without_semicolons(process_text(profile, thread));
    line += ';' + without_semicolons(fmt::format(
                      "{} {}", escape_for_terminal(profile.texts[thread.name]),
                      thread.tid));
    if (phase != 0)
      line += ';' + without_semicolons(
                        escape_for_terminal(profile.phase_name(phase)));
    for (const std::uint32_t frame : frames_of(profile, stack))
      line +=
          ';' + without_semicolons(frame_text(profile, profile.frames[frame]));
    if (stack == 0)
      line += ";[no frames]";
    out += fmt::format("{} {}\n", line, (ns + 500) / 1'000);
  }
}

}  // namespace postflight
