#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "checkpoint/comparison/manifest.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct DigestCommandOptions : CheckpointOptions {
  std::vector<std::string> paths;
  bool no_crc = false;
  std::string manifest;
};

Result<Exit> digest_one(const DigestCommandOptions& options, Session& session) {
  const KeyFilter filter = TRY(options.filter());
  const Checkpoint checkpoint = TRY(options.open(session));
  const std::vector<std::uint32_t> nodes =
      TRY(tensors_with_bytes(checkpoint, filter, NodeOrder::kKey));
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_bytes = totals_of(checkpoint, nodes).bytes});
  Output out([&session](std::string_view piece) { session.print(piece); });
  Manifest manifest;
  DigestReport report(options.path, checkpoint, session.options().json, out);
  const ReadOptions reading{.crc = options.no_crc ? CrcCheck::kNever
                                                  : CrcCheck::kWhole};
  const auto add = [&](std::uint32_t node, const Result<std::string>& digest) {
    progress->advance(checkpoint.tensor_at(node)->bytes());
    report.add(node, digest);
  };
  Result<> done =
      options.manifest.empty()
          ? digest_tensors(checkpoint, nodes, add, reading)
          : digest_tensors_by_block(
                checkpoint, nodes,
                [&](std::uint32_t node, const Result<TensorDigest>& digest) {
                  if (!digest) {
                    add(node, fail(digest.error().kind(), "{}",
                                   digest.error().message()));
                    return;
                  }
                  add(node, digest->sha256);
                  manifest.add(checkpoint, node, *digest);
                },
                reading);
  progress->finish();
  report.finish(session.terminal());
  TRY(std::move(done));
  // A manifest of a part would pass for one of the whole.
  if (!options.manifest.empty() && !has_problem(report.findings())) {
    AtomicFile file =
        TRY(AtomicFile::create(options.manifest, session.existing()));
    std::string text;
    {
      Output lines([&text](std::string_view piece) { text += piece; });
      manifest.write(lines);
    }
    TRY(file.write(as_bytes(text)));
    TRY(file.commit());
  }
  return exit_for(report.findings());
}

// With several, each has a heading, and the first error ends nothing.
Result<Exit> run(const DigestCommandOptions& options, Session& session) {
  if (!options.manifest.empty() && options.paths.size() > 1)
    return fail(ErrorKind::kUsage,
                "a manifest is that of one checkpoint; give one");
  if (!options.manifest.empty())
    TRY(AtomicFile::check(options.manifest, session.existing()));
  DigestCommandOptions one = options;
  Exit worst = Exit::kWell;
  for (const std::string& path : options.paths) {
    one.path = path;
    const bool several = options.paths.size() > 1;
    if (several && !session.options().json)
      session.print(fmt::format("{}{}:\n",
                                &path == &options.paths.front() ? "" : "\n",
                                escape_for_terminal(path)));
    Result<Exit> shown = digest_one(one, session);
    if (!several)
      return shown;
    if (!shown)
      session.complain(shown.error());
    const Exit exit = shown.value_or(Exit::kCouldNotLook);
    if (worst != Exit::kFound && exit != Exit::kWell)
      worst = exit;
  }
  return worst;
}

}  // namespace

Command ckpt_digest_command() {
  return {
      .name = "digest",
      .sentence =
          "Prints the SHA-256 of each tensor's elements.\n"
          "Elements are in row-major order and little-endian, with strides, "
          "conjugation and negation resolved, so equal tensors have equal "
          "digests in any format. Lines are sorted by key. Exit 1 if a tensor "
          "cannot be read or its record does not match its CRC.",
      .examples = {{"postflight ckpt digest model.pt", "all tensors"},
                   {"postflight ckpt digest --keys '*.weight' model.pt",
                    "some of them"},
                   {"postflight ckpt digest --json ckpt/ --rank 3",
                    "one rank, for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<DigestCommandOptions>();
        add_checkpoint_options(arguments, *options, options->paths);
        add_key_options(arguments, *options);
        arguments.flag("--no-crc", options->no_crc,
                       "Do not compare records with their CRC");
        arguments.option("--manifest", options->manifest, "FILE",
                         "Write the digests to FILE, for verify --manifest");
        arguments.force();
        add_threads_option(arguments);
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
