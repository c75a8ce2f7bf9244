// Ranks are numbered as Megatron does: the tensor axis is the innermost, then
// context, data and pipeline.
#include "synthetic/topology.h"

#include <map>
#include <string_view>
#include <utility>

namespace postflight::synthetic {
namespace {

struct Coordinates {
  int tensor, context, data, pipeline;
};

Coordinates coordinates(int rank, const Layout& layout) {
  Coordinates found{};
  found.tensor = rank % layout.tensor;
  rank /= layout.tensor;
  found.context = rank % layout.context;
  rank /= layout.context;
  found.data = rank % layout.data;
  found.pipeline = rank / layout.data;
  return found;
}

// Ranks with the same key are in one group of the axis.
std::pair<int, int> key_of(Axis axis, const Coordinates& at,
                           const Layout& layout) {
  switch (axis) {
    case Axis::kWorld:
      return {0, 0};
    case Axis::kData:
      return {at.pipeline, at.context * layout.tensor + at.tensor};
    case Axis::kContext:
      return {at.pipeline, at.data * layout.tensor + at.tensor};
    case Axis::kTensor:
      return {at.pipeline, at.data * layout.context + at.context};
    case Axis::kPipeline:
      return {at.data, at.context * layout.tensor + at.tensor};
    case Axis::kExpert:
      return {at.pipeline * layout.data + at.data / layout.expert,
              at.context * layout.tensor + at.tensor};
  }
  return {0, 0};
}

int extent(Axis axis, const Layout& layout) {
  switch (axis) {
    case Axis::kWorld:
      return layout.world();
    case Axis::kData:
      return layout.data;
    case Axis::kContext:
      return layout.context;
    case Axis::kTensor:
      return layout.tensor;
    case Axis::kPipeline:
      return layout.pipeline;
    case Axis::kExpert:
      return layout.expert;
  }
  return 0;
}

std::string describe(Axis axis, std::size_t index, GroupNames names) {
  constexpr std::string_view kShort[] = {"", "dp", "cp", "tp", "pp", "ep"};
  constexpr std::string_view kLong[] = {"",
                                        "DATA_PARALLEL_GROUP",
                                        "CONTEXT_PARALLEL_GROUP",
                                        "TENSOR_MODEL_PARALLEL_GROUP",
                                        "PIPELINE_MODEL_PARALLEL_GROUP",
                                        "EXPERT_MODEL_PARALLEL_GROUP"};
  if (axis == Axis::kWorld)
    return "default_pg";
  const auto place = static_cast<std::size_t>(axis);
  switch (names) {
    case GroupNames::kIndexed:
      return fmt::format("{}_{}", kShort[place], index);
    case GroupNames::kMesh:
      return fmt::format("mesh_{}", kShort[place]);
    case GroupNames::kMegatron:
      return std::string(kLong[place]);
  }
  return "";
}

void add_axis(Axis axis, GroupNames names, Topology& topology) {
  if (extent(axis, topology.layout) < 2)
    return;
  std::map<std::pair<int, int>, std::size_t> by_key;
  const std::size_t first = topology.groups.size();
  for (int rank = 0; rank < topology.world(); ++rank) {
    const std::pair<int, int> key =
        key_of(axis, coordinates(rank, topology.layout), topology.layout);
    const auto [found, is_new] =
        by_key.try_emplace(key, topology.groups.size());
    if (is_new)
      topology.groups.push_back(
          {axis,
           fmt::format("{}", topology.groups.size()),
           describe(axis, topology.groups.size() - first, names),
           {}});
    JobGroup& group = topology.groups[found->second];
    Topology::Place& place = topology.places[static_cast<std::size_t>(rank)];
    const auto index = static_cast<std::size_t>(axis);
    place.group[index] = static_cast<int>(found->second);
    place.position[index] = static_cast<int>(group.members.size());
    int made = 0;
    for (const int other : place.group)
      made += other >= 0 ? 1 : 0;
    place.local_id[index] = made - 1;
    group.members.push_back(rank);
  }
}

}  // namespace

int Topology::size_of(int rank, Axis axis) const {
  const int group = group_of(rank, axis);
  return group < 0
             ? 1
             : static_cast<int>(
                   groups[static_cast<std::size_t>(group)].members.size());
}

Result<Topology> make_topology(const Layout& layout, GroupNames names) {
  for (const int part : {layout.tensor, layout.pipeline, layout.data,
                         layout.expert, layout.context})
    if (part < 1 || part > 4096)
      return fail(ErrorKind::kUsage, "an axis has 1 to 4096 ranks, not {}",
                  part);
  if (layout.data % layout.expert != 0)
    return fail(ErrorKind::kUsage,
                "{} data-parallel ranks can't be divided by {} expert ones",
                layout.data, layout.expert);
  constexpr std::int64_t kMostRanks = 1 << 20;
  std::int64_t world = layout.tensor;
  for (const int part : {layout.pipeline, layout.data, layout.context})
    if ((world *= part) > kMostRanks)
      return fail(ErrorKind::kUsage, "a job has at most {} ranks", kMostRanks);
  if (world < 2)
    return fail(ErrorKind::kUsage, "a job has at least 2 ranks");

  Topology topology;
  topology.layout = layout;
  topology.places.resize(static_cast<std::size_t>(world));
  for (int rank = 0; rank < topology.world(); ++rank) {
    Topology::Place& place = topology.places[static_cast<std::size_t>(rank)];
    place.group.fill(-1);
    place.position.fill(0);
    place.local_id.fill(0);
    place.stage = coordinates(rank, layout).pipeline;
  }
  using enum Axis;
  for (const Axis axis : {kWorld, kData, kContext, kTensor, kPipeline, kExpert})
    add_axis(axis, names, topology);
  return topology;
}

}  // namespace postflight::synthetic
