#include "report/checkpoint/scan.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "report/checkpoint/report.h"

namespace postflight {

ScanReport::ScanReport(Form form, const Terminal& terminal, Output& out)
    : form_(form), terminal_(terminal), out_(out), json_(out) {
  if (form == Form::kJson) {
    json_.begin("postflight.ckpt.scan/1");
    json_.array("files");
  } else if (form == Form::kSarif) {
    json_.object();
    json_.field("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_.field("version", "2.1.0");
    json_.array("runs");
    json_.object();
    json_.object("tool");
    json_.object("driver");
    json_.field("name", "postflight");
    json_.end();
    json_.end();
    json_.array("results");
  }
}

void ScanReport::add(const ScannedFile& file) {
  if (!file.error.empty())
    failed_ = true;
  else if (!file.verdict)
    ++others_;
  else
    ++counts_[file.verdict->safety()];
  found_ |= file.verdict && !file.verdict->is_safe();
  if (form_ == Form::kText)
    add_text(file);
  else if (form_ == Form::kJson)
    add_json(file);
  else
    add_sarif(file);
}

void ScanReport::add_text(const ScannedFile& file) {
  const std::string path = escape_for_terminal(file.path.string());
  if (!file.error.empty()) {
    out_ += fmt::format("UNREADABLE  {}: {}\n", path,
                        escape_for_terminal(file.error));
    return;
  }
  if (!file.verdict)
    return;
  out_ += fmt::format("{}  {}", safety_text(*file.verdict, terminal_), path);
  if (const Reason* const lead = file.verdict->lead())
    out_ += fmt::format(
        ": {}{}", escape_for_terminal(lead->message),
        lead->where.empty()
            ? ""
            : fmt::format(" ({})", escape_for_terminal(lead->where)));
  out_ += "\n";
}

void ScanReport::add_json(const ScannedFile& file) {
  json_.object();
  json_.field("file", file.path.string());
  json_.field("bytes", file.bytes);
  if (!file.error.empty())
    json_.field("error", file.error);
  if (file.verdict)
    write_safety_json(*file.verdict, json_);
  json_.end();
}

void ScanReport::add_sarif(const ScannedFile& file) {
  const auto result = [&](std::string_view rule, std::string_view level,
                          std::string_view message) {
    json_.object();
    json_.field("ruleId", rule);
    json_.field("level", level);
    json_.object("message");
    json_.field("text", message);
    json_.end();
    json_.array("locations");
    json_.object();
    json_.object("physicalLocation");
    json_.object("artifactLocation");
    json_.field("uri", file.path.generic_string());
    json_.end();
    json_.end();
    json_.end();
    json_.end();
    json_.end();
  };
  if (!file.error.empty())
    result("unreadable", "error", file.error);
  if (!file.verdict)
    return;
  for (const Reason& reason : file.verdict->reasons())
    result(reason.kind,
           reason.safety >= Safety::kRunsCode ? "error" : "warning",
           reason.where.empty()
               ? reason.message
               : fmt::format("{} ({})", reason.message, reason.where));
}

void ScanReport::finish() {
  if (form_ == Form::kSarif) {
    json_.end();
    json_.end();
    json_.end();
    json_.end();
    out_ += "\n";
    return;
  }
  if (form_ == Form::kJson) {
    json_.end();
    json_.object("totals");
    for (const auto& [safety, count] : counts_)
      json_.field(safety_name(safety), count);
    json_.field("other_kinds", others_);
    json_.end();
    json_.array("findings");
    json_.end();
    json_.finish();
    return;
  }
  std::string text;
  std::size_t files = 0;
  for (auto at = counts_.rbegin(); at != counts_.rend(); ++at) {
    text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", at->second,
                        safety_name(at->first));
    files += at->second;
  }
  out_ += fmt::format("{} file{}{}", files, files == 1 ? "" : "s", text);
  if (others_ > 0)
    out_ += fmt::format("; {} of other kinds", others_);
  out_ += "\n";
}

}  // namespace postflight
