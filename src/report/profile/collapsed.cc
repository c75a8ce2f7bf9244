// Collapsed stacks, as flamegraph.pl reads them.

#include <map>
#include <utility>

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
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
  for (const ProfileSample& sample : profile.samples)
    ++counts[{options.phases ? sample.phase : 0, sample.stack}];
  for (const auto& [key, count] : counts) {
    std::string line;
    if (key.first != 0)
      line = without_semicolons(
          escape_for_terminal(profile.phase_name(key.first)));
    for (const std::uint32_t frame : frames_of(profile, key.second)) {
      if (!line.empty())
        line += ';';
      line += without_semicolons(frame_text(profile, profile.frames[frame]));
    }
    if (line.empty())
      line = "[no frames]";
    out += fmt::format("{} {}\n", line, count);
  }
}

}  // namespace postflight
