#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/context.h"
#include "checkpoint/inspection.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/reader.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/verification/verification.h"

namespace postflight {

// Checkpoints as the commands, the C ABI and Python see them: open one, then
// list it, inspect() or digest_tensors(), read it with a CheckpointReader, or
// verify() it. The types are those of the library; this is what is left to do.

struct CheckpointSource {
  std::string path;  // "-" is standard input
  std::optional<std::uint32_t> rank = {};
  Joining joining = {};
  std::vector<std::string> plugins = {};  // shared libraries of transforms
  std::optional<SecretKey> key = {};
};

Result<Checkpoint> open_checkpoint(CheckpointSource source,
                                   const Context& context = {});

enum class NodeOrder : std::uint8_t { kFile, kKey, kSize };

struct ListRequest {
  KeyFilter filter = {};
  NodeKinds kinds = NodeKinds::kTensors;
  NodeOrder order = NodeOrder::kFile;
};

Result<std::vector<std::uint32_t>> list_nodes(const Checkpoint& checkpoint,
                                              const ListRequest& request);
// The nodes with these paths; every tensor if there are none.
Result<std::vector<std::uint32_t>> find_nodes(
    const Checkpoint& checkpoint, std::span<const std::string> paths);
// The selected tensors that have bytes of their own.
Result<std::vector<std::uint32_t>> tensors_with_bytes(
    const Checkpoint& checkpoint, const KeyFilter& filter,
    NodeOrder order = NodeOrder::kFile);

// Writes the tensors of a plan to a file, which appears once it is complete.
Result<> write_file(const Checkpoint& checkpoint, const ReadPlan& plan,
                    ExportFormat format, const std::filesystem::path& output,
                    Existing existing = Existing::kRefuse,
                    const ReadOptions& options = {});

// Whether a file is one of the checkpoint's, by whatever name, or is in its
// folder.
bool is_part_of(const Checkpoint& checkpoint,
                const std::filesystem::path& file);

}  // namespace postflight
