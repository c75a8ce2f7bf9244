#include <memory>

#include "checkpoint/model/data_file.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct VerifyCommandOptions : CheckpointOptions {
  bool strict = false;
};

Result<Exit> run(const VerifyCommandOptions& options, Session& session) {
  const Checkpoint checkpoint = TRY(options.open(session));
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
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_verification_json(options.path, checkpoint, found, out);
  else
    write_verification(options.path, checkpoint, found, session.terminal(),
                       out);
  return exit_for(found.findings, options.strict);
}

}  // namespace

Command ckpt_verify_command() {
  return {
      .name = "verify",
      .sentence =
          "Checks that a checkpoint is complete and undamaged.\n"
          "It checks the CRC of every record, torch's serialization id, every "
          "byte of an archive, every tensor against its record, and ranks "
          "against each other. Exit 1 if something is wrong.",
      .examples = {{"postflight ckpt verify model.pt", "one file"},
                   {"postflight ckpt verify checkpoints/step_100",
                    "a folder of ranks or shards"},
                   {"postflight ckpt verify --strict --json model.pt",
                    "warnings count; for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<VerifyCommandOptions>();
        add_checkpoint_options(arguments, *options);
        add_threads_option(arguments);
        arguments.flag("--strict", options->strict, "Exit 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
