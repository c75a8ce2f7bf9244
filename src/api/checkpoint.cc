#include "api/checkpoint.h"

#include <algorithm>
#include <functional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "checkpoint/model/data_file.h"
#include "stream/codec/built_in.h"
#include "stream/extension/transform_plugin.h"

namespace postflight {
namespace {

Result<std::optional<ExtensionRegistry>> load_plugins(
    std::span<const std::string> files) {
  if (files.empty())
    return std::nullopt;
  ExtensionRegistry registry = built_in_registry();
  for (const std::string& file : files)
    TRY(load_plugin(file, registry));
  return registry;
}

void sort_by_size(const Checkpoint& checkpoint,
                  std::vector<std::uint32_t>& nodes) {
  std::ranges::stable_sort(
      nodes, std::ranges::greater(), [&checkpoint](std::uint32_t node) {
        const Tensor* const tensor = checkpoint.tensor_at(node);
        return tensor == nullptr || tensor->has_parts() ? 0 : tensor->bytes();
      });
}

void sort_by_key(const Checkpoint& checkpoint,
                 std::vector<std::uint32_t>& nodes) {
  std::vector<std::pair<std::string, std::uint32_t>> named;
  named.reserve(nodes.size());
  for (const std::uint32_t node : nodes)
    named.emplace_back(checkpoint.path_of(node), node);
  std::ranges::sort(named);
  std::ranges::transform(named, nodes.begin(),
                         [](const auto& pair) { return pair.second; });
}

void sort_nodes(const Checkpoint& checkpoint, NodeOrder order,
                std::vector<std::uint32_t>& nodes) {
  if (order == NodeOrder::kSize)
    sort_by_size(checkpoint, nodes);
  else if (order == NodeOrder::kKey)
    sort_by_key(checkpoint, nodes);
}

}  // namespace

Result<Checkpoint> open_checkpoint(CheckpointSource source,
                                   const Context& context) {
  auto extensions = TRY(load_plugins(source.plugins));
  return Checkpoint::open(input_path(source.path),
                          {.context = context,
                           .rank = source.rank,
                           .joining = std::move(source.joining),
                           .extensions = std::move(extensions),
                           .key = std::move(source.key)});
}

Result<std::vector<std::uint32_t>> list_nodes(const Checkpoint& checkpoint,
                                              const ListRequest& request) {
  std::vector<std::uint32_t> nodes =
      TRY(select_nodes(checkpoint, request.filter, request.kinds));
  sort_nodes(checkpoint, request.order, nodes);
  return nodes;
}

Result<std::vector<std::uint32_t>> find_nodes(
    const Checkpoint& checkpoint, std::span<const std::string> paths) {
  if (paths.empty())
    return select_nodes(checkpoint, KeyFilter());
  std::vector<std::uint32_t> nodes;
  for (const std::string& path : paths)
    nodes.push_back(TRY(find_node(checkpoint, path)));
  return nodes;
}

Result<std::vector<std::uint32_t>> tensors_with_bytes(
    const Checkpoint& checkpoint, const KeyFilter& filter, NodeOrder order) {
  std::vector<std::uint32_t> nodes = TRY(select_nodes(checkpoint, filter));
  sort_nodes(checkpoint, order, nodes);
  std::erase_if(nodes, [&checkpoint](std::uint32_t node) {
    const Tensor* const tensor = checkpoint.tensor_at(node);
    return tensor->has_parts() || tensor->storage == kNoIndex;
  });
  return nodes;
}

Result<> write_file(const Checkpoint& checkpoint, const ReadPlan& plan,
                    ExportFormat format, const std::filesystem::path& output,
                    Existing existing, const ReadOptions& options) {
  AtomicFile file = TRY(AtomicFile::create(output, existing));
  TRY(CheckpointReader(checkpoint, options)
          .write(plan, format,
                 [&file](Bytes piece) { return file.write(piece); }));
  return file.commit();
}

bool is_part_of(const Checkpoint& checkpoint,
                const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return false;
  for (const DataFile* const part : checkpoint.files())
    if (std::filesystem::equivalent(part->path(), file, error))
      return true;
  std::filesystem::directory_iterator entry(checkpoint.path(), error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::error_code none;
    if (std::filesystem::equivalent(entry->path(), file, none))
      return true;
  }
  return false;
}

}  // namespace postflight
