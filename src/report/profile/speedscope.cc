#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "json/writer.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

// Bytes that are not UTF-8 are escaped without a mark, which speedscope has
// none for.
void write_text(std::string_view name, std::string_view text,
                JsonWriter& json) {
  json.key(name);
  json.value(text);
}

void write_frames(const Profile& profile, JsonWriter& json) {
  json.array("frames");
  for (const ProfileFrame& frame : profile.frames) {
    json.object();
    write_text("name", profile.texts[frame.name], json);
    if (frame.file != 0)
      write_text("file", profile.texts[frame.file], json);
    if (frame.line != 0)
      json.field("line", frame.line);
    json.end();
  }
  json.end();
}

void write_one(const Profile& profile, std::string_view name,
               const std::vector<const ProfileSample*>& samples,
               JsonWriter& json) {
  json.object();
  json.field("type", "sampled");
  write_text("name", name, json);
  json.field("unit", "nanoseconds");
  json.field("startValue", 0);
  // Runs of one stack are written once, with all their weight.
  json.array("samples");
  std::uint64_t total = 0;
  std::vector<std::uint64_t> weights;
  std::uint32_t last = 0;
  for (const ProfileSample* const sample : samples) {
    total += sample->weight_ns;
    if (!weights.empty() && sample->stack == last) {
      weights.back() += sample->weight_ns;
      continue;
    }
    last = sample->stack;
    json.array();
    for (const std::uint32_t frame : frames_of(profile, last))
      json.value(frame);
    json.end();
    weights.push_back(sample->weight_ns);
  }
  json.end();
  json.array("weights");
  for (const std::uint64_t weight : weights)
    json.number(weight);
  json.end();
  json.key("endValue");
  json.number(total);
  json.end();
}

}  // namespace

void write_profile_speedscope(const Profile& profile,
                              const ProfileReportOptions& options,
                              Output& out) {
  // A thread has several numbers if its name or its program changed; it is
  // shown by the last of them.
  std::map<std::tuple<std::int32_t, pid_t, pid_t>, std::uint32_t> last;
  const auto identity = [&](std::uint32_t number) {
    const ProfileThread& thread = profile.threads[number];
    return std::tuple(thread.rank, thread.pid, thread.tid);
  };
  for (std::uint32_t i = 0; i < profile.threads.size(); ++i)
    last[identity(i)] = i;
  std::map<std::pair<std::uint32_t, std::uint32_t>,
           std::vector<const ProfileSample*>>
      parts;
  for (const ProfileSample& sample : profile.samples)
    parts[{last[identity(sample.thread)], sample.phase}].push_back(&sample);
  JsonWriter json(out);
  json.object();
  json.field("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.field("exporter", "postflight");
  write_text("name", options.files.empty() ? "profile" : options.files.front(),
             json);
  json.field("activeProfileIndex", 0);
  json.object("shared");
  write_frames(profile, json);
  json.end();
  json.array("profiles");
  for (const auto& [key, samples] : parts) {
    std::string its_name = thread_text(profile, profile.threads[key.first]);
    if (key.second != 0)
      its_name += ": " + profile.phase_name(key.second);
    write_one(profile, its_name, samples, json);
  }
  json.end();
  json.finish();
}

}  // namespace postflight
