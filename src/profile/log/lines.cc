#include "profile/log/lines.h"

#include <algorithm>
#include <functional>
#include <map>

namespace postflight {
namespace {

// The innermost frame of each stack that is Python's; none: the number of
// frames.
std::vector<std::uint32_t> python_frames(const Profile& profile) {
  const auto none = static_cast<std::uint32_t>(profile.frames.size());
  std::vector<std::uint32_t> found(profile.stacks.size(), none);
  // A parent comes before its children.
  for (std::size_t i = 1; i < profile.stacks.size(); ++i) {
    const StackNode& node = profile.stacks[i];
    found[i] = profile.frames[node.frame].kind == FrameKind::kPython
                   ? node.frame
                   : found[node.parent];
  }
  return found;
}

}  // namespace

std::vector<LineTime> lines_of(const Profile& profile) {
  const std::vector<std::uint32_t> frames = python_frames(profile);
  std::map<std::uint32_t, LineTime> times;
  for (const ProfileSample& sample : profile.samples) {
    const std::uint32_t number = frames[sample.stack];
    if (number == profile.frames.size())
      continue;
    const ProfileFrame& frame = profile.frames[number];
    LineTime& line = times[number];
    line.function = frame.name;
    line.file = frame.file;
    line.line = frame.line;
    const std::uint64_t user_ns = sample.weight_ns - sample.system_ns;
    ++line.samples;
    line.ns += sample.weight_ns;
    line.system_ns += sample.system_ns;
    line.interpreter_ns += sample.flags.interpreter ? user_ns : 0;
    line.library_ns += sample.flags.library ? user_ns : 0;
    line.gil_ns += sample.flags.gil ? sample.weight_ns : 0;
    line.waiting_ns += sample.flags.waiting ? sample.weight_ns : 0;
  }
  std::vector<LineTime> lines;
  for (const auto& [number, line] : times)
    lines.push_back(line);
  std::ranges::stable_sort(lines, std::greater<>(), &LineTime::ns);
  return lines;
}

}  // namespace postflight
