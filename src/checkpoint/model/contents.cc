#include "checkpoint/model/contents.h"

#include <algorithm>
#include <charconv>

namespace postflight {

std::uint64_t CheckpointContents::memory_left() const {
  constexpr std::uint64_t kPerByte = 64;
  constexpr std::uint64_t kAlways = 48 << 20;  // of 64 MiB, less the program
  constexpr std::uint64_t kMostFiles = std::uint64_t{1} << 56;
  const std::uint64_t allowed =
      std::min(disk_bytes, kMostFiles) * kPerByte + kAlways;
  const std::uint64_t taken = held_bytes + tree.memory_bytes();
  return allowed - std::min(allowed, taken);
}

Result<Pickle> load_pickle(CheckpointContents& checkpoint, DataFile& file,
                           Bytes bytes) {
  Limits limits = checkpoint.context.limits;
  limits.max_value_bytes =
      std::min(limits.max_value_bytes, checkpoint.memory_left());
  file.machines.push_back(std::make_unique<Machine>(limits));
  Machine& machine = *file.machines.back();
  Result<Pickle> pickle = machine.load(bytes);
  checkpoint.held_bytes += machine.memory_bytes();
  return pickle;
}

void add_assembly(CheckpointContents& checkpoint, const Assembly& given,
                  std::uint32_t parent, const Key& key, std::string problem) {
  Tree& tree = checkpoint.tree;
  Assembly* const assembly = tree.arena.make(given);
  const std::uint32_t node = tree.add(parent, key, NodeKind::kTensor);
  std::optional<std::uint64_t> size = assembly->dtype.size;
  for (const std::int64_t length : assembly->shape)
    size = size ? checked_multiply(*size, static_cast<std::uint64_t>(length))
                : size;
  if (!problem.empty())
    assembly->chunks = {};
  else if (!size || *size > std::uint64_t{1} << 62)
    problem = "its shape is larger than any memory";
  else if (!assembly->dtype.known())
    problem = fmt::format("its dtype {} is unknown", assembly->dtype.name);
  else
    problem = assembly->settle();
  if (!problem.empty())
    checkpoint.report("bad_chunks", Severity::kError, problem,
                      std::string(assembly->name));
  Storage& storage = tree.storages.emplace_back();
  storage.key = assembly->name;
  storage.size = size.value_or(0);
  storage.problem = tree.keep(problem);
  storage.assembly = assembly;
  const auto index = static_cast<std::uint32_t>(tree.storages.size() - 1);
  // It has the shape of its storage, so no element is out of bounds.
  const std::uint32_t number =
      tree.add_plain_tensor(assembly->dtype, assembly->shape, kNoIndex);
  Tensor& tensor = tree.tensors[number];
  tensor.storage = index;
  tensor.problem = storage.problem;
  if (storage.problem.empty() && assembly->lost() > 0) {
    tensor.problem = tree.keep(assembly->loss());
    tensor.in_part = true;
  }
  tree.nodes[node].index = number;
  checkpoint.assemblies.push_back(assembly);
}

void spread_problems(Tree& tree) {
  for (Tensor& tensor : tree.tensors)
    if (tensor.storage != kNoIndex && tensor.problem.empty())
      tensor.problem = tree.storages[tensor.storage].problem;
}

bool stays_inside(const std::filesystem::path& name) {
  return !name.empty() && name.is_relative() &&
         std::ranges::none_of(name, [](const std::filesystem::path& part) {
           return part == "..";
         });
}

std::string rank_file_name(std::uint32_t rank) {
  return fmt::format("checkpoint_{}.pt", rank);
}

std::optional<std::uint32_t> rank_of_file(std::string_view name) {
  constexpr std::string_view kBefore = "checkpoint_";
  std::uint32_t rank = 0;
  if (!name.starts_with(kBefore))
    return std::nullopt;
  const auto read = std::from_chars(name.data() + kBefore.size(),
                                    name.data() + name.size(), rank);
  // Written as torch writes it: without leading zeros.
  return read.ec == std::errc() && name == rank_file_name(rank)
             ? std::optional(rank)
             : std::nullopt;
}

}  // namespace postflight
