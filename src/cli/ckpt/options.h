#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/checkpoint.h"
#include "cli/command.h"

namespace postflight {

// What the ckpt commands have in common: which checkpoint, and which keys of
// it.
struct CheckpointOptions {
  std::string path;
  std::optional<std::uint32_t> rank;
  std::vector<std::string> keys;
  std::vector<std::string> expressions;
  std::vector<std::string> plugins;
  std::optional<std::string> key_file;

  bool selects_keys() const { return !keys.empty() || !expressions.empty(); }
  Result<KeyFilter> filter() const {
    return KeyFilter::make(keys, expressions);
  }
  // The checkpoint, with the plug-ins and the key that were given.
  Result<Checkpoint> open(const Session& session, Joining joining = {}) const;
  // The key that was given, if any.
  Result<std::optional<SecretKey>> key() const;
};

void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options);
// The same for a command that takes several checkpoints.
void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options,
                            std::vector<std::string>& paths);
void add_key_options(CommandArguments& arguments, CheckpointOptions& options);
void add_threads_option(CommandArguments& arguments);

Command ckpt_convert_command();
Command ckpt_apply_command();
Command ckpt_bisect_command();
Command ckpt_delta_command();
Command ckpt_diff_command();
Command ckpt_fold_command();
Command ckpt_latest_command();
Command ckpt_log_command();
Command ckpt_scan_command();
Command ckpt_stats_command();
Command ckpt_ls_command();
Command ckpt_merge_command();
Command ckpt_reshard_command();
Command ckpt_salvage_command();
Command ckpt_digest_command();
Command ckpt_read_command();
Command ckpt_show_command();
Command ckpt_verify_command();

}  // namespace postflight
