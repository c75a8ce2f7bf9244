#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model/checkpoint.h"
#include "cli/command.h"

namespace postflight {

// What the ckpt commands have in common: which checkpoint, which keys of it.
struct CheckpointOptions {
  std::string path;
  std::optional<std::uint32_t> rank;
  std::vector<std::string> keys;
  std::vector<std::string> expressions;
  std::size_t threads = 0;
  std::vector<std::string> plugins;
  std::optional<std::string> key_file;
};

void add_checkpoint_options(CommandArguments& arguments,
                            CheckpointOptions& options);
void add_key_options(CommandArguments& arguments, CheckpointOptions& options);
void add_threads_option(CommandArguments& arguments,
                        CheckpointOptions& options);

// Loads the plug-ins and the key, too.
Result<Checkpoint> open_checkpoint(const CheckpointOptions& options);

// The tensors that the options pick, and with `all` every other node too.
Result<std::vector<std::uint32_t>> picked_nodes(
    const Checkpoint& checkpoint, const CheckpointOptions& options,
    bool all = false);

// The one node a text names: its printed path, the path without quotes, or
// (root).
Result<std::uint32_t> named_node(const Checkpoint& checkpoint,
                                 const std::string& name);

// As its findings say, or kFound if a tensor among the nodes is unreadable.
Exit exit_for(const Checkpoint& checkpoint,
              std::span<const std::uint32_t> nodes);

Command ckpt_ls_command();
Command ckpt_digest_command();
Command ckpt_read_command();
Command ckpt_show_command();
Command ckpt_verify_command();

}  // namespace postflight
