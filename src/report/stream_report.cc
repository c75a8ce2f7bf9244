#include "report/stream_report.h"

#include "base/escape.h"
#include "base/units.h"
#include "json/writer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace postflight {
namespace {

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// The throughput in decoded bytes, which are the user's data.
std::uint64_t plain_bytes(const StreamOutcome& outcome) {
  return outcome.encoded ? outcome.input_bytes : outcome.output_bytes;
}

std::uint64_t bytes_per_second(const StreamOutcome& outcome) {
  const double passed = std::max(seconds(outcome.duration), 1e-9);
  return static_cast<std::uint64_t>(static_cast<double>(plain_bytes(outcome)) /
                                    passed);
}

std::string descriptor_of(const ExtensionType& type) {
  return fmt::format("{}/{}", type.registry_name, type.version);
}

// Further properties, after the summary.
std::string traits(const ExtensionType& type) {
  std::string text;
  if (type.seekable)
    text += "; seekable";
  if (type.needs_key)
    text += "; needs a key";
  if (!type.origin.empty())
    text += "; from " + escape_for_terminal(type.origin);
  return text;
}

}  // namespace

std::string stream_summary(const StreamOutcome& outcome) {
  const std::string size =
      fmt::format("{} to {}", human_bytes(outcome.input_bytes),
                  human_bytes(outcome.output_bytes));
  const std::string share =
      outcome.encoded && outcome.input_bytes > 0
          ? fmt::format(" ({:.0f} %)",
                        100.0 * static_cast<double>(outcome.output_bytes) /
                            static_cast<double>(outcome.input_bytes))
          : "";
  return fmt::format("{}{} in {}, {}/s", size, share,
                     human_duration(outcome.duration),
                     human_bytes(bytes_per_second(outcome)));
}

void write_stream_json(const StreamOutcome& outcome, Output& out) {
  JsonWriter json(out);
  json.begin(outcome.encoded ? "postflight.stream.encode/1"
                             : "postflight.stream.decode/1");
  json.array("transforms", outcome.transforms);
  json.field("input", outcome.input);
  json.field("input_bytes", outcome.input_bytes);
  json.field("output", outcome.output);
  json.field("output_bytes", outcome.output_bytes);
  constexpr double kMicroseconds = 1e6;
  json.field("seconds", std::round(seconds(outcome.duration) * kMicroseconds) /
                            kMicroseconds);
  json.field("bytes_per_second", bytes_per_second(outcome));
  if (outcome.damage.empty())
    json.field("damage", nullptr);
  else
    json.field("damage", outcome.damage);
  json.finish();
}

void write_transforms(std::span<const ExtensionType> types,
                      const Terminal& terminal, Output& out) {
  for (const ExtensionType& type : types) {
    out += fmt::format("{}\n  {}{}\n",
                       terminal.styled(Style::kBold, descriptor_of(type)),
                       escape_for_terminal(type.summary), traits(type));
    for (const ExtensionType::Parameter& parameter : type.parameters)
      out += fmt::format("  {:<9} {}\n", parameter.name, parameter.summary);
  }
}

void write_transforms_json(std::span<const ExtensionType> types, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.stream.list/1");
  json.array("transforms");
  for (const ExtensionType& type : types) {
    json.object();
    json.field("descriptor", descriptor_of(type));
    json.field("summary", type.summary);
    json.field("seekable", type.seekable);
    json.field("needs_key", type.needs_key);
    if (type.origin.empty()) {
      json.field("plugin", nullptr);
    } else {
      json.object("plugin");
      json.field("file", type.origin);
      json.end();
    }
    json.array("parameters");
    for (const ExtensionType::Parameter& parameter : type.parameters) {
      json.object();
      json.field("name", parameter.name);
      json.field("summary", parameter.summary);
      json.end();
    }
    json.end();
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
