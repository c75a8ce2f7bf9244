#include "base/environment.h"
#include "cli/ckpt/options.h"

namespace postflight {
namespace {

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

// Everything but PATH.
void add_source_options(CommandArguments& arguments,
                        CheckpointOptions& options) {
  arguments.option("--rank", options.rank, "N",
                   "Only the file of this rank in a folder of checkpoint_N.pt");
  arguments.option("--plugin", options.plugins, "FILE",
                   "A shared library with stream transforms; its code is run");
  arguments.option("--key-file", options.key_file, "FILE",
                   "File with the key of encrypted items (default: "
                   "$POSTFLIGHT_KEY)");
}

}  // namespace

Result<std::optional<SecretKey>> CheckpointOptions::key() const {
  return load_key(key_file);
}

Result<Checkpoint> CheckpointOptions::open(const Session& session,
                                           Joining joining) const {
  auto key = TRY(load_key(key_file));
  return open_checkpoint({.path = path,
                          .rank = rank,
                          .joining = std::move(joining),
                          .plugins = plugins,
                          .key = std::move(key)},
                         session.context());
}

void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options) {
  arguments
      .positional("PATH", options.path,
                  "A checkpoint: a file, a folder, or - for standard input")
      .required();
  add_source_options(arguments, options);
}

void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options,
                            std::vector<std::string>& paths) {
  arguments
      .positional("PATH", paths,
                  "Checkpoints: files, folders, or - for standard input")
      .required();
  add_source_options(arguments, options);
}

void add_key_options(CommandArguments& arguments, CheckpointOptions& options) {
  arguments.option(
      "--keys", options.keys, "GLOB",
      "Only keys that match; * is any text, ? any character, [a-z] a "
      "set. May be repeated");
  arguments.option(
      "--regex", options.expressions, "RE2",
      "Only keys that contain a match of this regular expression. May "
      "be repeated");
}

void add_threads_option(CommandArguments& arguments) {
  arguments.threads("N", "How many threads to use (one per processor)");
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
                   {"postflight ckpt ls --help", "help on one command"}},
      .declare = {},
      .hidden = false,
      .commands = {
          ckpt_ls_command(), ckpt_show_command(), ckpt_read_command(),
          ckpt_digest_command(), ckpt_verify_command(), ckpt_convert_command(),
          ckpt_reshard_command(), ckpt_merge_command(), ckpt_salvage_command(),
          ckpt_diff_command(), ckpt_delta_command(), ckpt_apply_command(),
          ckpt_fold_command(), ckpt_stats_command(), ckpt_scan_command(),
          ckpt_log_command(), ckpt_latest_command(), ckpt_bisect_command()}};
}

}  // namespace postflight
