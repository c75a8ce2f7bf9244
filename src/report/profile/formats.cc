// The formats that other programs draw: collapsed stacks and speedscope.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/json_string.h"
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

// The frames of a stack, the outermost first.
std::vector<std::uint32_t> frames_of(const Profile& profile,
                                     std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack != 0; stack = profile.stacks[stack].parent)
    frames.push_back(profile.stacks[stack].frame);
  std::ranges::reverse(frames);
  return frames;
}

std::string json_text(std::string_view text) {
  std::string quoted;
  // Bytes that are not UTF-8 are shown escaped; the format has no mark for it.
  static_cast<void>(append_json_string(text, quoted));
  return quoted;
}

void write_frames(const Profile& profile, Output& out) {
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const ProfileFrame& frame = profile.frames[i];
    out += fmt::format("{}{{\"name\":{}", i == 0 ? "" : ",",
                       json_text(profile.texts[frame.name]));
    if (frame.file != 0)
      out += ",\"file\":" + json_text(profile.texts[frame.file]);
    if (frame.line != 0)
      out += fmt::format(",\"line\":{}", frame.line);
    out += "}";
  }
}

void write_one(const Profile& profile, std::string_view name,
               const std::vector<const ProfileSample*>& samples, Output& out) {
  std::uint64_t total = 0;
  out += fmt::format(
      "{{\"type\":\"sampled\",\"name\":{},\"unit\":"
      "\"nanoseconds\",\"startValue\":0,\"samples\":[",
      json_text(name));
  // Runs of one stack are written once, with all their weight.
  std::vector<std::uint64_t> weights;
  std::uint32_t last = 0;
  for (const ProfileSample* const sample : samples) {
    total += sample->weight_ns;
    if (!weights.empty() && sample->stack == last) {
      weights.back() += sample->weight_ns;
      continue;
    }
    last = sample->stack;
    out += fmt::format("{}[{}]", weights.empty() ? "" : ",",
                       fmt::join(frames_of(profile, last), ","));
    weights.push_back(sample->weight_ns);
  }
  out += fmt::format("],\"weights\":[{}],\"endValue\":{}}}",
                     fmt::join(weights, ","), total);
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
      line = "[nothing seen]";
    out += fmt::format("{} {}\n", line, count);
  }
}

void write_profile_speedscope(const Profile& profile, std::string_view name,
                              Output& out) {
  std::map<std::pair<std::uint32_t, std::uint32_t>,
           std::vector<const ProfileSample*>>
      parts;
  for (const ProfileSample& sample : profile.samples)
    parts[{sample.thread, sample.phase}].push_back(&sample);
  out += fmt::format(
      "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
      "\"exporter\":\"postflight\",\"name\":{},\"activeProfileIndex\":0,"
      "\"shared\":{{\"frames\":[",
      json_text(name));
  write_frames(profile, out);
  out += "]},\"profiles\":[";
  bool first = true;
  for (const auto& [key, samples] : parts) {
    if (!std::exchange(first, false))
      out += ",";
    std::string its_name = thread_text(profile, profile.threads[key.first]);
    if (key.second != 0)
      its_name += ": " + profile.phase_name(key.second);
    write_one(profile, its_name, samples, out);
  }
  out += "]}\n";
}

}  // namespace postflight
