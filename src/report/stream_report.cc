#include "report/stream_report.h"

#include "base/escape.h"
#include "base/units.h"
#include "report/finding_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace postflight {
namespace {

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// Of the bytes that are not encoded, as those are what the user has.
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

// "  --" for a line of the list: what else there is to know.
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
  out += fmt::format("{{\"schema\":\"postflight.stream.{}/1\",",
                     outcome.encoded ? "encode" : "decode");
  out += "\"transforms\":[";
  for (std::size_t i = 0; i < outcome.transforms.size(); ++i)
    out += fmt::format("{}\"{}\"", i == 0 ? "" : ",", outcome.transforms[i]);
  out += "],";
  write_json_field("input", outcome.input, out);
  out += fmt::format(",\"input_bytes\":{},", outcome.input_bytes);
  write_json_field("output", outcome.output, out);
  out += fmt::format(
      ",\"output_bytes\":{},\"seconds\":{:.6f},\"bytes_per_second\":{},",
      outcome.output_bytes, seconds(outcome.duration),
      bytes_per_second(outcome));
  if (outcome.damage.empty())
    out += "\"damage\":null";
  else
    write_json_field("damage", outcome.damage, out);
  out += "}\n";
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
  out += "{\"schema\":\"postflight.stream.list/1\",\"transforms\":[";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ExtensionType& type = types[i];
    out += i == 0 ? "{" : ",{";
    write_json_field("descriptor", descriptor_of(type), out);
    out += ",";
    write_json_field("summary", type.summary, out);
    out += fmt::format(",\"seekable\":{},\"needs_key\":{},\"plugin\":",
                       type.seekable, type.needs_key);
    if (type.origin.empty()) {
      out += "null";
    } else {
      out += "{";
      write_json_field("file", type.origin, out);
      out += "}";
    }
    out += ",\"parameters\":[";
    for (std::size_t j = 0; j < type.parameters.size(); ++j) {
      out += j == 0 ? "{" : ",{";
      write_json_field("name", type.parameters[j].name, out);
      out += ",";
      write_json_field("summary", type.parameters[j].summary, out);
      out += "}";
    }
    out += "]}";
  }
  out += "]}\n";
}

}  // namespace postflight
