#include "report/profile/report.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>

#include "base/escape.h"

namespace postflight {
namespace {

constexpr std::array kProfileFormats = {
    ProfileFormat{"text", "where the time went", write_profile_text},
    ProfileFormat{"collapsed", "for flamegraph.pl", write_profile_collapsed},
    ProfileFormat{"speedscope", "for speedscope.app", write_profile_speedscope},
    ProfileFormat{"json", "as --json", write_profile_json},
};

}  // namespace

std::span<const ProfileFormat> profile_formats() {
  return kProfileFormats;
}

const ProfileFormat& profile_format(std::string_view name) {
  const auto found =
      std::ranges::find(kProfileFormats, name, &ProfileFormat::name);
  assert(found != kProfileFormats.end());
  return *found;
}

// The frames of a stack, the outermost first.
std::vector<std::uint32_t> frames_of(const Profile& profile,
                                     std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack != 0; stack = profile.stacks[stack].parent)
    frames.push_back(profile.stacks[stack].frame);
  std::ranges::reverse(frames);
  return frames;
}

std::string frame_text(const Profile& profile, const ProfileFrame& frame) {
  std::string text = escape_for_terminal(profile.texts[frame.name]);
  const std::string file = escape_for_terminal(profile.texts[frame.file]);
  if (file.empty())
    return text;
  if (frame.line == 0)
    return fmt::format("{} ({})", text, file);
  return fmt::format("{} ({}:{})", text, file, frame.line);
}

std::string process_text(const Profile& profile, const ProfileThread& thread) {
  std::string text =
      thread.rank < 0 ? "" : fmt::format("rank {}, ", thread.rank);
  text += std::to_string(thread.pid);
  if (const std::string& command = profile.texts[thread.process];
      !command.empty())
    text += " " + escape_for_terminal(command);
  return text;
}

std::string thread_text(const Profile& profile, const ProfileThread& thread) {
  std::string text =
      thread.rank < 0 ? "" : fmt::format("rank {}, ", thread.rank);
  return text + fmt::format("process {}, thread {} ({})", thread.pid,
                            thread.tid,
                            escape_for_terminal(profile.texts[thread.name]));
}

}  // namespace postflight
