#include <algorithm>
#include <memory>

#include "cli/ckpt/options.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

struct LsOptions : CheckpointOptions {
  bool all = false;
  bool tree = false;
  std::size_t depth = 2;
  std::string sort = "file";
};

void sort_nodes(const Checkpoint& checkpoint, const std::string& by,
                std::vector<std::uint32_t>& nodes) {
  const auto size_of = [&checkpoint](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[node]);
    return tensor == nullptr || tensor->has_parts() ? 0 : tensor->bytes();
  };
  if (by == "size") {
    std::ranges::stable_sort(nodes, std::ranges::greater(), size_of);
  } else if (by == "key") {
    std::vector<std::pair<std::string, std::uint32_t>> named;
    named.reserve(nodes.size());
    for (const std::uint32_t node : nodes)
      named.emplace_back(checkpoint.path_of(node), node);
    std::ranges::sort(named);
    std::ranges::transform(named, nodes.begin(),
                           [](const auto& pair) { return pair.second; });
  }
}

Result<Exit> run(LsOptions& options, Session& session) {
  if (options.tree && session.options().json)
    return fail(
        ErrorKind::kUsage,
        "--tree is for people; --json lists every tensor, to be added up");
  const Checkpoint checkpoint = TRY(open_checkpoint(options));
  std::vector<std::uint32_t> nodes =
      TRY(picked_nodes(checkpoint, options, options.all));
  sort_nodes(checkpoint, options.sort, nodes);
  const ListingOptions listing{std::move(nodes), options.all};
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_listing_json(options.path, checkpoint, listing, out);
  else if (options.tree)
    write_tree(options.path, checkpoint, listing, options.depth,
               session.terminal(), out);
  else
    write_listing(options.path, checkpoint, listing, session.terminal(), out);
  return exit_for(checkpoint, listing.nodes);
}

}  // namespace

Command ckpt_ls_command() {
  return {
      .name = "ls",
      .sentence =
          "Lists the tensors of a checkpoint: key, dtype, shape, size.\n"
          "Exit 1 if the file is damaged or a listed tensor cannot be read.",
      .examples = {{"postflight ckpt ls model.pt", "one line a tensor"},
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
                       "Show what is no tensor as well: values and containers");
        arguments.flag("--tree", options->tree,
                       "Show totals by prefix; not with --json");
        arguments.option("--depth", options->depth, "N",
                         "How many levels --tree shows (2)");
        arguments
            .option("--sort", options->sort, "file|key|size", "In which order")
            .one_of({"file", "key", "size"});
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
