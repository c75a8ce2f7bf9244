#include <cstdlib>
#include <memory>

#include "checkpoint/comparison/difference.h"
#include "checkpoint/comparison/health.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/comparison.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct DiffOptions : CheckpointOptions {
  std::string other;
  std::string relative;
  std::string absolute;
  bool quick = false;
  bool tensors_only = false;
  bool all = false;
};

Result<double> parse_tolerance(const std::string& text) {
  if (text.empty())
    return 0.0;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(number >= 0))
    return fail(ErrorKind::kUsage,
                "'{}' is not a valid tolerance: give a number from 0 on, such "
                "as 1e-5",
                text);
  return number;
}

Result<Exit> diff(const DiffOptions& options, Session& session) {
  const double relative = TRY(parse_tolerance(options.relative));
  const double absolute = TRY(parse_tolerance(options.absolute));
  const KeyFilter filter = TRY(options.filter());
  const Checkpoint before = TRY(options.open(session));
  DiffOptions second = options;
  second.path = options.other;
  const Checkpoint after = TRY(second.open(session));
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Comparing"});
  const CheckpointDifference found = TRY(compare(
      before, after, filter,
      {.relative = relative,
       .absolute = absolute,
       .quick = options.quick,
       .values = !options.tensors_only,
       .progress = [&](std::uint64_t bytes) { progress->advance(bytes); }}));
  progress->finish();
  Output out([&session](std::string_view piece) { session.print(piece); });
  const ComparedNames names{options.path, options.other};
  if (session.options().json)
    write_difference_json(names, before, after, found, out);
  else
    write_difference(names, before, after, found, options.all,
                     session.terminal(), out);
  return exit_for(found.any());
}

struct StatsOptions : CheckpointOptions {
  std::vector<std::string> fail_on;
  bool all = false;
};

Result<Exit> stats(const StatsOptions& options, Session& session) {
  const KeyFilter filter = TRY(options.filter());
  const Checkpoint checkpoint = TRY(options.open(session));
  const std::vector<std::uint32_t> nodes =
      TRY(tensors_with_bytes(checkpoint, filter));
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_bytes = totals_of(checkpoint, nodes).bytes});
  HealthOptions health_options;
  if (!options.fail_on.empty())
    health_options.fail_on = options.fail_on;
  health_options.progress = [&](std::uint64_t bytes) {
    progress->advance(bytes);
  };
  const CheckpointHealth health =
      TRY(examine(checkpoint, nodes, health_options));
  progress->finish();
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_health_json(options.path, checkpoint, health, out);
  else
    write_health(options.path, checkpoint, health, session.terminal(), out);
  return exit_for(health.findings);
}

}  // namespace

Command ckpt_diff_command() {
  return {
      .name = "diff",
      .sentence =
          "Compares two checkpoints of any formats, tensor by tensor.\n"
          "Tensors are found by their keys; equal bytes under another key "
          "count as moved. Exit 1 if something differs.",
      .examples = {{"postflight ckpt diff step_100.pt step_200.pt",
                    "what training changed"},
                   {"postflight ckpt diff ckpt/ model.safetensors --tensors",
                    "is a conversion right?"},
                   {"postflight ckpt diff a.pt b.pt --rtol 1e-3 --atol 1e-6",
                    "with a tolerance"},
                   {"postflight ckpt diff a.pt b.pt --quick --json",
                    "which tensors, for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<DiffOptions>();
        add_checkpoint_options(arguments, *options);
        arguments
            .positional("OTHER", options->other,
                        "The checkpoint to compare it with")
            .required();
        add_key_options(arguments, *options);
        arguments.option("--rtol", options->relative, "R",
                         "Relative difference that counts as equal (0)");
        arguments.option("--atol", options->absolute, "A",
                         "Absolute difference that counts as equal (0)");
        arguments.flag("--quick", options->quick,
                       "Only which tensors differ, not by how much");
        arguments.flag("--tensors", options->tensors_only,
                       "Do not compare other values");
        arguments.flag("--all", options->all, "Show every difference");
        add_threads_option(arguments);
        return [options](Session& session) { return diff(*options, session); };
      }};
}

Command ckpt_stats_command() {
  return {
      .name = "stats",
      .sentence =
          "Shows the range, mean, NaN, Inf and zeros of every tensor, and what "
          "looks wrong.\n"
          "Signs: nan, inf, zero (all of a weight), constant, denormal (more "
          "than a tenth), outlier (100 times the magnitude of the same tensor "
          "in other layers). Exit 1 for those of --fail-on.",
      .examples = {{"postflight ckpt stats model.pt", "is it healthy?"},
                   {"postflight ckpt stats ckpt/ --keys '*.weight'",
                    "some tensors"},
                   {"postflight ckpt stats model.pt --fail-on nan,inf,outlier",
                    "for a hook"},
                   {"postflight ckpt stats model.pt --json", "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<StatsOptions>();
        add_checkpoint_options(arguments, *options);
        add_key_options(arguments, *options);
        const std::span<const std::string_view> signs = health_signs();
        arguments
            .option("--fail-on", options->fail_on, "SIGN,...",
                    "The signs that are errors (nan,inf)")
            .separated_by(',')
            .one_of({signs.begin(), signs.end()});
        add_threads_option(arguments);
        return [options](Session& session) { return stats(*options, session); };
      }};
}

}  // namespace postflight
