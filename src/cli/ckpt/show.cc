#include <algorithm>
#include <memory>

#include "checkpoint/inspection.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct ShowOptions : CheckpointOptions {
  std::vector<std::string> names;
  std::string slice;
};

// Whether the slice fits some tensor: one with as many dimensions as it names,
// each of any length.
Result<> check_slice(const std::string& slice) {
  constexpr std::int64_t kLong = std::int64_t{1} << 62;
  const auto commas = std::ranges::count(slice, ',');
  const std::vector<std::int64_t> shape(static_cast<std::size_t>(commas) + 1,
                                        kLong);
  TRY(parse_slice(slice, shape));
  return {};
}

Result<Exit> run(const ShowOptions& options, Session& session) {
  TRY(check_slice(options.slice));
  const Checkpoint checkpoint = TRY(options.open(session));
  const std::vector<std::uint32_t> nodes =
      TRY(find_nodes(checkpoint, options.names));
  Output out([&session](std::string_view piece) { session.print(piece); });
  ShowReport report(options.path, checkpoint, session.options().json, out);
  for (const std::uint32_t node : nodes) {
    if (const Tensor* const tensor = checkpoint.tensor_at(node))
      report.add_tensor(node, inspect(checkpoint, *tensor, options.slice));
    else if (checkpoint.nodes()[node].kind == NodeKind::kValue)
      report.add_value(node);
    else
      report.add_tree(node);
  }
  report.finish(session.terminal());
  return report.failed() ? Exit::kFound : exit_for(checkpoint.findings());
}

}  // namespace

Command ckpt_show_command() {
  return {
      .name = "show",
      .sentence =
          "Prints values of a checkpoint as numpy would, with their "
          "statistics.\n"
          "A key with others below it is shown as a tree. "
          "Exit 1 if some of it cannot be shown or the file is damaged.",
      .examples = {{"postflight ckpt show model.pt fc.weight", "one tensor"},
                   {"postflight ckpt show model.pt fc.weight --slice '[:4, 0]'",
                    "a part of it"},
                   {"postflight ckpt show run.pt 'opt[0].m' epoch",
                    "several keys"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ShowOptions>();
        add_checkpoint_options(arguments, *options);
        arguments.positional("KEY", options->names,
                             "What to show; every tensor if not given");
        arguments.option("--slice", options->slice, "[A:B:C, ...]",
                         "Only these elements, in numpy's notation");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
