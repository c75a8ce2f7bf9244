#include <memory>

#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

Result<Exit> run(const CheckpointOptions& options, Session& session) {
  const KeyFilter filter = TRY(options.filter());
  const Checkpoint checkpoint = TRY(options.open(session));
  const std::vector<std::uint32_t> nodes =
      TRY(tensors_with_bytes(checkpoint, filter));
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_bytes = totals_of(checkpoint, nodes).bytes});
  Output out([&session](std::string_view piece) { session.print(piece); });
  DigestReport report(options.path, checkpoint, session.options().json, out);
  Result<> done = digest_tensors(
      checkpoint, nodes,
      [&](std::uint32_t node, const Result<std::string>& digest) {
        progress->advance(checkpoint.tensor_at(node)->bytes());
        report.add(node, digest);
      });
  progress->finish();
  report.finish(session.terminal());
  TRY(std::move(done));
  return exit_for(report.findings());
}

}  // namespace

Command ckpt_digest_command() {
  return {
      .name = "digest",
      .sentence =
          "Prints the SHA-256 of each tensor's elements.\n"
          "Elements are in row-major order and little-endian, with strides, "
          "conjugation and negation resolved, so equal tensors have equal "
          "digests in any format.",
      .examples = {{"postflight ckpt digest model.pt", "all tensors"},
                   {"postflight ckpt digest --keys '*.weight' model.pt",
                    "some of them"},
                   {"postflight ckpt digest --json ckpt/ --rank 3",
                    "one rank, for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<CheckpointOptions>();
        add_checkpoint_options(arguments, *options);
        add_key_options(arguments, *options);
        add_threads_option(arguments);
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
