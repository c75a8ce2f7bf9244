#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/writing/torch_archive.h"
#include "checkpoint/writing/torch_pickle.h"
#include "stream/extension/transform_chain.h"

namespace postflight {

enum class OutputFormat : std::uint8_t {
  kTorch,        // one archive, as torch.save writes it
  kSafetensors,  // one file
  kShards,       // Hugging Face's: files of a size, and an index
  kDistributed,  // a folder as torch.distributed.checkpoint writes it
};

// "torch", "safetensors", "hf", "dcp".
std::optional<OutputFormat> output_format_named(std::string_view name);
std::string_view output_format_name(OutputFormat format);
// By the extension of a name: .pt, .pth, .bin, .ckpt or .safetensors.
std::optional<OutputFormat> output_format_of(const std::filesystem::path& name);
constexpr bool is_folder(OutputFormat format) {
  return format == OutputFormat::kShards ||
         format == OutputFormat::kDistributed;
}

struct Renaming {
  std::string expression;
  std::string replacement;
};

// What to write of a checkpoint, and how.
struct OutputRequest {
  OutputFormat format = OutputFormat::kSafetensors;
  KeyFilter filter = {};
  std::vector<Renaming> renamings = {};
  std::optional<Dtype> dtype = {};  // of all floating-point tensors
  std::uint64_t shard_bytes = 5'000'000'000;
  std::uint32_t ranks = 1;      // of a distributed checkpoint
  std::uint32_t dimension = 0;  // which these divide
  // Only what this one of the ranks gets.
  std::optional<std::uint32_t> part = {};
  // Leave out tensors that cannot be read instead of failing.
  bool skip_unreadable = false;
  // Even if the tree is not changed, do not keep the pickle of an archive.
  bool anew = false;
  // Write the tensors without the other values, which the format cannot hold.
  bool drop_values = false;
  // Of the items of a distributed checkpoint.
  const TransformChain* transforms = nullptr;
};

// A tensor whose digest can be compared with that of what was written.
struct WrittenTensor {
  OutputTensor output;
  std::vector<Key> path;  // from the root
};

// A value of a distributed checkpoint, which has a name for each.
struct WrittenValue {
  std::uint32_t node = 0;
  std::string name;
  std::vector<Key> path;
};

// What will be written. Valid while the checkpoint lives.
struct OutputPlan {
  OutputRequest request;
  std::vector<WrittenTensor> tensors;
  std::vector<WrittenValue> written_values = {};
  std::vector<std::uint32_t> values;  // of the tree, written or not
  // Tensors that are left out, and why.
  std::vector<std::pair<std::uint32_t, std::string>> lost;
  std::deque<TensorSlice> slices;  // if only a part is written
  bool writes_values = false;
  std::vector<bool> kept;  // nodes; empty: all
  // Nothing is left out or changed, so an archive of torch.save keeps its own
  // pickle.
  bool as_it_is = false;
  // As a state dict of names rather than as the tree it is.
  bool is_flat = false;
  std::uint64_t bytes = 0;           // of the tensors
  std::set<std::string> texts = {};  // which paths are made of
};

// Which elements of a dimension one of `ranks` gets, as torch's chunk() divides
// it: all have the same length but the last ones, which may have none.
SliceRange share_of(std::int64_t size, std::uint32_t rank, std::uint32_t ranks);

// Fails with the name of what cannot be written: tensors that cannot be read
// or that the format cannot hold, two that would get one name, values unless
// they are dropped.
Result<OutputPlan> plan_output(const Checkpoint& checkpoint,
                               OutputRequest request);

struct OutputOptions {
  Existing existing = Existing::kRefuse;
  ReadOptions reading = {};
  bool verify = true;
  // What the digests must be, by node, where that is known from elsewhere.
  std::map<std::uint32_t, std::string> expected = {};
  std::function<void(std::uint64_t bytes)> progress = {};
};

struct OutputFile {
  std::string name;
  std::uint64_t bytes = 0;
};

// What was written.
struct Written {
  std::vector<OutputFile> files;
  std::uint64_t bytes = 0;
  std::uint64_t verified = 0;  // tensors whose digests were compared
};

}  // namespace postflight
