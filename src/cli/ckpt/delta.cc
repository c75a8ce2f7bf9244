#include <memory>
#include <string>
#include <vector>

#include "checkpoint/delta/making.h"
#include "checkpoint/delta/opening.h"
#include "cli/ckpt/output_options.h"
#include "report/checkpoint/delta.h"

namespace postflight {
namespace {

struct DeltaCommandOptions : CheckpointOptions {
  std::string other;
  std::string output;
  bool dry_run = false;
};

void write_summary(const DeltaReport& report, Session& session) {
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_delta_json(report, out);
  else
    write_delta_report(report, out);
}

std::uint64_t tensor_bytes(const Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : checkpoint.tensors())
    bytes += tensor.readable() ? tensor.bytes() : 0;
  return bytes;
}

Result<Exit> delta(const DeltaCommandOptions& options, Session& session) {
  const Checkpoint before = TRY(options.open(session));
  DeltaCommandOptions second = options;
  second.path = options.other;
  const Checkpoint after = TRY(second.open(session));
  for (const Checkpoint* const input : {&before, &after})
    if (is_part_of(*input, options.output))
      return fail(ErrorKind::kUsage,
                  "{} belongs to a checkpoint that is read; name another file",
                  options.output);
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Comparing",
       .total_bytes = tensor_bytes(before) + 3 * tensor_bytes(after)});
  const DeltaSummary summary = TRY(make_delta(
      before, after, options.output,
      {.existing = session.existing(),
       .dry_run = options.dry_run,
       .progress = [&](std::uint64_t bytes) { progress->advance(bytes); }}));
  progress->finish();
  const std::vector<std::string> inputs = {options.path, options.other};
  write_summary({.inputs = inputs,
                 .output = options.output,
                 .schema = "postflight.ckpt.delta/1",
                 .dry_run = options.dry_run,
                 .summary = summary},
                session);
  return Exit::kWell;
}

struct ApplyOptions : OutputCommandOptions {
  std::string delta;
};

Result<Exit> apply(const ApplyOptions& options, Session& session) {
  OutputRequest request = TRY(output_request(options));
  Checkpoint base = TRY(options.open(session));
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Checking the base", .total_bytes = tensor_bytes(base)});
  AppliedDelta applied =
      TRY(apply_delta(std::move(base), options.delta,
                      [&](std::uint64_t bytes) { progress->advance(bytes); }));
  progress->finish();
  return write_checkpoint(applied.checkpoint, std::move(request), options,
                          "postflight.ckpt.apply/1", session,
                          std::move(applied.expected));
}

struct FoldOptions {
  std::vector<std::string> deltas;
  std::string output;
  bool dry_run = false;
};

Result<Exit> fold(const FoldOptions& options, Session& session) {
  if (options.deltas.size() < 2)
    return fail(ErrorKind::kUsage, "give two deltas or more, in their order");
  std::vector<std::filesystem::path> paths;
  for (const std::string& delta : options.deltas) {
    std::error_code error;
    if (std::filesystem::equivalent(delta, options.output, error))
      return fail(ErrorKind::kUsage, "{} is read; name another file",
                  options.output);
    paths.emplace_back(delta);
  }
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Folding"});
  const DeltaSummary summary = TRY(fold_deltas(
      paths, options.output, session.context(),
      {.existing = session.existing(),
       .dry_run = options.dry_run,
       .progress = [&](std::uint64_t bytes) { progress->advance(bytes); }}));
  progress->finish();
  write_summary({.inputs = options.deltas,
                 .output = options.output,
                 .schema = "postflight.ckpt.fold/1",
                 .dry_run = options.dry_run,
                 .summary = summary},
                session);
  return Exit::kWell;
}

}  // namespace

Command ckpt_delta_command() {
  return {
      .name = "delta",
      .sentence =
          "Writes what makes one checkpoint of another: the changed blocks.\n"
          "With it and the first, postflight ckpt apply makes the second "
          "again.",
      .examples =
          {{"postflight ckpt delta step_100.pt step_200.pt -o d.pfdelta",
            "what a hundred steps changed"},
           {"postflight ckpt delta base/ tuned/ -o tuned.pfdelta",
            "of any formats"},
           {"postflight ckpt delta a.pt b.pt -o d.pfdelta --json",
            "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<DeltaCommandOptions>();
        add_checkpoint_options(arguments, *options);
        arguments
            .positional("OTHER", options->other,
                        "The checkpoint that the delta shall make")
            .required();
        arguments
            .option("-o,--output", options->output, "FILE",
                    "The delta to write")
            .required();
        arguments.flag("--dry-run", options->dry_run,
                       "Say what would be written, and write nothing");
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return delta(*options, session); };
      }};
}

Command ckpt_apply_command() {
  return {
      .name = "apply",
      .sentence =
          "Makes a checkpoint of another one and a delta.\n"
          "The digests of the first are compared with those the delta was made "
          "of before a byte is written, and those of the result after it.",
      .examples = {{"postflight ckpt apply step_100.pt d.pfdelta step_200.pt",
                    "the second checkpoint"},
                   {"postflight ckpt apply base/ d.pfdelta tuned.safetensors",
                    "in any format"},
                   {"postflight ckpt apply a.pt d.pfdelta b.pt --dry-run",
                    "does it fit?"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ApplyOptions>();
        add_checkpoint_options(arguments, *options);
        arguments.positional("DELTA", options->delta, "The delta").required();
        add_output_options(arguments, *options);
        return [options](Session& session) { return apply(*options, session); };
      }};
}

Command ckpt_fold_command() {
  return {
      .name = "fold",
      .sentence =
          "Makes one delta of several that follow each other.\n"
          "No checkpoint is needed: only their blocks are read.",
      .examples = {{"postflight ckpt fold d1.pfdelta d2.pfdelta -o d.pfdelta",
                    "two steps at once"},
                   {"postflight ckpt fold day/*.pfdelta -o day.pfdelta",
                    "those of a day"},
                   {"postflight ckpt fold a.pfdelta b.pfdelta -o c.pfdelta "
                    "--json",
                    "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<FoldOptions>();
        arguments.positional("DELTA", options->deltas, "Deltas, in their order")
            .required();
        arguments
            .option("-o,--output", options->output, "FILE",
                    "The delta to write")
            .required();
        arguments.flag("--dry-run", options->dry_run,
                       "Say what would be written, and write nothing");
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return fold(*options, session); };
      }};
}

}  // namespace postflight
