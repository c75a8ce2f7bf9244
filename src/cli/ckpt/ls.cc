#include <algorithm>
#include <memory>
#include <span>

#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct LsOptions : CheckpointOptions {
  bool all = false;
  bool tree = false;
  std::size_t depth = 2;
  std::string sort = "file";

  Result<ListRequest> request() const {
    KeyFilter wanted = TRY(filter());
    return ListRequest{.filter = std::move(wanted),
                       .kinds = all ? NodeKinds::kAll : NodeKinds::kTensors,
                       .order = sort == "size"  ? NodeOrder::kSize
                                : sort == "key" ? NodeOrder::kKey
                                                : NodeOrder::kFile};
  }
};

// kFound if one of the nodes is an unreadable tensor.
Exit exit_for_listing(const Checkpoint& checkpoint,
                      std::span<const std::uint32_t> nodes) {
  const bool lost = std::ranges::any_of(nodes, [&](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(node);
    return tensor != nullptr && !tensor->problem.empty();
  });
  return lost ? Exit::kFound : exit_for(checkpoint.findings());
}

Result<Exit> run(const LsOptions& options, Session& session) {
  if (options.tree && session.options().json)
    return fail(ErrorKind::kUsage,
                "--tree has no JSON form; --json lists every tensor");
  const ListRequest request = TRY(options.request());
  const Checkpoint checkpoint = TRY(options.open(session));
  std::vector<std::uint32_t> nodes = TRY(list_nodes(checkpoint, request));
  const ListingOptions listing{std::move(nodes), options.all};
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_listing_json(options.path, checkpoint, listing, out);
  else if (options.tree)
    write_tree(options.path, checkpoint, listing, options.depth,
               session.terminal(), out);
  else
    write_listing(options.path, checkpoint, listing, session.terminal(), out);
  return exit_for_listing(checkpoint, listing.nodes);
}

}  // namespace

Command ckpt_ls_command() {
  return {
      .name = "ls",
      .sentence =
          "Lists the tensors of a checkpoint: key, dtype, shape, size.\n"
          "Exit 1 if the file is damaged or a listed tensor cannot be read.",
      .examples = {{"postflight ckpt ls model.pt", "a line for each tensor"},
                   {"postflight ckpt ls --tree --depth 3 model.pt",
                    "totals by prefix"},
                   {"postflight ckpt ls --all --keys 'opt*' run.pt",
                    "values too, of some keys"},
                   {"postflight ckpt ls --sort size --json model.pt",
                    "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<LsOptions>();
        add_checkpoint_options(arguments, *options);
        add_key_options(arguments, *options);
        arguments.flag("--all", options->all,
                       "Show values and containers as well as tensors");
        arguments.flag("--tree", options->tree,
                       "Show totals by prefix; not with --json");
        arguments.option("--depth", options->depth, "N",
                         "How many levels --tree shows (2)");
        arguments
            .option("--sort", options->sort, "file|key|size",
                    "The order of the tensors")
            .one_of({"file", "key", "size"});
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
