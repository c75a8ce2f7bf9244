#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/writing/output.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/output.h"

namespace postflight {

// What the commands that write a checkpoint have in common.
struct OutputCommandOptions : CheckpointOptions {
  std::string output;
  std::string to;
  std::vector<std::string> renamings;
  std::string dtype;
  std::string shard_size;
  std::vector<std::string> transforms;
  std::string sidecar;
  bool drop_values = false;
  bool no_verify = false;
  bool no_crc = false;
  bool dry_run = false;
};

// PATH and OUT, --to, --keys, --dtype, ... and --force.
void add_output_options(CommandArguments& arguments,
                        OutputCommandOptions& options);

// What was asked for; `format` if neither --to nor the name of OUT says it.
Result<OutputRequest> output_request(const OutputCommandOptions& options,
                                     std::optional<OutputFormat> format = {});

// Writes, with a progress line, or says what would be written.
Result<Exit> write_checkpoint(
    const Checkpoint& checkpoint, OutputRequest request,
    const OutputCommandOptions& options, std::string_view schema,
    Session& session, std::map<std::uint32_t, std::string> expected = {});

}  // namespace postflight
