#include <memory>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/verification/verification.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

struct VerifyCommandOptions : CheckpointOptions {
  bool strict = false;
};

struct Word {
  std::string_view text;
  std::string_view name;
  Style style;
};

Word verdict_word(const Checkpoint& checkpoint, const Verification& found) {
  if (!checkpoint.truncation().empty())
    return {"TRUNCATED", "truncated", Style::kRed};
  if (exit_for(found.findings) == Exit::kFound)
    return {"DAMAGED", "damaged", Style::kRed};
  if (exit_for(found.findings, true) == Exit::kFound)
    return {"ODD", "odd", Style::kYellow};
  return {"WHOLE", "whole", Style::kGreen};
}

std::string summary(const Checkpoint& checkpoint, const Verification& found) {
  if (!checkpoint.truncation().empty())
    return std::string(checkpoint.truncation());
  std::string text =
      fmt::format("{} of {} tensors can be read",
                  found.tensors - found.unreadable, found.tensors);
  if (found.records > 0)
    text +=
        fmt::format("; {} of {} records hold their CRC ({})", found.crc_good,
                    found.records, human_bytes(found.bytes));
  return text;
}

Result<Exit> run(VerifyCommandOptions& options, Session& session) {
  const Checkpoint checkpoint = TRY(open_checkpoint(options));
  std::uint64_t bytes = 0;
  for (const DataFile* const file : checkpoint.files())
    bytes += file->size();
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Checking", .total_bytes = bytes});
  const Verification found =
      verify(checkpoint, {.progress = [&progress](std::uint64_t done) {
               progress->advance(done);
             }});
  progress->finish();
  const Word word = verdict_word(checkpoint, found);
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json) {
    out += "{\"schema\":\"postflight.ckpt.verify/1\",";
    write_json_field("file", options.path, out);
    out += fmt::format(
        ",\"format\":\"{}\",\"verdict\":\"{}\",\"tensors\":{},"
        "\"unreadable\":{},\"records\":{},\"crc\":{{\"good\":{},\"absent\":{},"
        "\"bad\":{},\"bytes\":{}}},\"findings\":",
        format_name(checkpoint.format()), word.name, found.tensors,
        found.unreadable, found.records, found.crc_good, found.crc_absent,
        found.crc_bad, json_number(found.bytes));
    write_findings_json(found.findings, out);
    out += "}\n";
  } else {
    out += fmt::format("{}  {}\n",
                       session.terminal().styled(word.style, word.text),
                       escape_for_terminal(options.path));
    out += fmt::format("  {}: {}\n", format_title(checkpoint.format()),
                       escape_for_terminal(summary(checkpoint, found)));
    write_findings(found.findings, session.terminal(), out);
  }
  return exit_for(found.findings, options.strict);
}

}  // namespace

Command ckpt_verify_command() {
  return {
      .name = "verify",
      .sentence =
          "Checks that a checkpoint is whole.\n"
          "Every record's CRC, torch's serialization id, every byte of an "
          "archive, every tensor against its record, ranks against each "
          "other. Exit 1 if something is wrong.",
      .examples = {{"postflight ckpt verify model.pt", "one file"},
                   {"postflight ckpt verify checkpoints/step_100",
                    "a folder of ranks or shards"},
                   {"postflight ckpt verify --strict --json model.pt",
                    "warnings count; for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<VerifyCommandOptions>();
        add_checkpoint_options(arguments, *options);
        add_threads_option(arguments, *options);
        arguments.flag("--strict", options->strict, "Exit 1 for warnings too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
