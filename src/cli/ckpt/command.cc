#include <algorithm>

#include "base/environment.h"
#include "checkpoint/key_filter.h"
#include "cli/ckpt/options.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_plugin.h"

namespace postflight {

namespace {

// For items of distributed checkpoints that went through transforms.
void add_transform_options(CommandArguments& arguments,
                           CheckpointOptions& options) {
  arguments.option("--plugin", options.plugins, "FILE",
                   "A shared library with stream transforms; its code is run");
  arguments.option("--key-file", options.key_file, "FILE",
                   "The key of encrypted items; else $POSTFLIGHT_KEY");
}

Result<std::optional<ExtensionRegistry>> load_plugins(
    std::span<const std::string> files) {
  if (files.empty())
    return std::nullopt;
  ExtensionRegistry registry = built_in_registry();
  for (const std::string& file : files)
    TRY(load_plugin(file, registry));
  return registry;
}

Result<std::optional<SecretKey>> load_key(
    const std::optional<std::string>& file) {
  if (file)
    return TRY(SecretKey::read(*file));
  // Most checkpoints need no key, so an invalid one is not an error here.
  if (const auto text = process_environment()("POSTFLIGHT_KEY"))
    if (Result<SecretKey> key = SecretKey::from_hex(*text))
      return *std::move(key);
  return std::nullopt;
}

}  // namespace

void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options) {
  arguments.positional("PATH", options.path, "A checkpoint: a file or a folder")
      .required();
  arguments.option("--rank", options.rank, "N",
                   "Of a folder of checkpoint_N.pt, only this rank's file");
  add_transform_options(arguments, options);
}

void add_key_options(CommandArguments& arguments, CheckpointOptions& options) {
  arguments.option("--keys", options.keys, "GLOB",
                   "Only keys that match; * is any text, ? any character. For "
                   "several, again");
  arguments.option("--regex", options.expressions, "RE2",
                   "Only keys in which this regular expression is found. For "
                   "several, again");
}

void add_threads_option(CommandArguments& arguments,
                        CheckpointOptions& options) {
  arguments.option("--threads", options.threads, "N",
                   "How many threads read (one for each processor)");
}

Result<Checkpoint> open_checkpoint(const CheckpointOptions& options) {
  return Checkpoint::open(options.path,
                          {.context = {.threads = options.threads},
                           .rank = options.rank,
                           .extensions = TRY(load_plugins(options.plugins)),
                           .key = TRY(load_key(options.key_file))});
}

Result<std::vector<std::uint32_t>> picked_nodes(
    const Checkpoint& checkpoint, const CheckpointOptions& options, bool all) {
  const KeyFilter filter =
      TRY(KeyFilter::make(options.keys, options.expressions));
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool tensor = checkpoint.nodes()[i].kind == NodeKind::kTensor;
    if ((tensor || all) && filter.picks(checkpoint, i))
      nodes.push_back(i);
  }
  if (nodes.empty() && !filter.picks_all())
    return fail(ErrorKind::kUsage, "no key of {} matches", options.path);
  return nodes;
}

Result<std::uint32_t> named_node(const Checkpoint& checkpoint,
                                 const std::string& name) {
  std::uint32_t plain = kNoIndex;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (checkpoint.path_of(i) == name)
      return i;
    if (plain == kNoIndex && plain_path(checkpoint, i) == name)
      plain = i;
  }
  if (plain != kNoIndex)
    return plain;
  if (name == "(root)" && count > 0)
    return 0;
  return fail(ErrorKind::kUsage,
              "no key is called {}; postflight ckpt ls --all shows them", name);
}

Exit exit_for(const Checkpoint& checkpoint,
              std::span<const std::uint32_t> nodes) {
  const bool lost = std::ranges::any_of(nodes, [&](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[node]);
    return tensor != nullptr && !tensor->problem.empty();
  });
  return lost ? Exit::kFound : exit_for(checkpoint.findings());
}

Command ckpt_command() {
  return {
      .name = "ckpt",
      .sentence =
          "Reads checkpoints of every kind without running anything in "
          "them.",
      .examples = {{"postflight ckpt ls model.pt", "what is in it"},
                   {"postflight ckpt verify model.pt", "is it whole?"},
                   {"postflight ckpt read model.pt -o model.safetensors",
                    "in another format"},
                   {"postflight ckpt ls --help", "all about one command"}},
      .declare = {},
      .hidden = false,
      .commands = {ckpt_ls_command(), ckpt_show_command(), ckpt_read_command(),
                   ckpt_digest_command(), ckpt_verify_command()}};
}

}  // namespace postflight
