#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace postflight::synthetic {

// The axes of parallelism, each with its own groups.
enum class Axis : std::uint8_t {
  kWorld,
  kData,
  kContext,
  kTensor,
  kPipeline,
  kExpert,
};
constexpr std::size_t kAxes = 6;

// The number of ranks along each axis. Experts are spread over the ranks of the
// data axis, so `expert` divides `data` and adds no ranks.
struct Layout {
  int tensor = 1;
  int pipeline = 1;
  int data = 1;
  int expert = 1;
  int context = 1;

  int world() const { return tensor * pipeline * data * context; }
};

// How the groups are described: tp_3 as in many scripts, mesh_tp as by device
// meshes, TENSOR_MODEL_PARALLEL_GROUP as by Megatron.
enum class GroupNames : std::uint8_t { kIndexed, kMesh, kMegatron };

struct JobGroup {
  Axis axis = Axis::kWorld;
  std::string name;  // its number: all ranks make all groups in one order
  std::string description;
  std::vector<int> members;
};

// The groups of a job, and each rank's place among them.
struct Topology {
  struct Place {
    std::array<int, kAxes> group;     // -1: none on that axis
    std::array<int, kAxes> position;  // in that group
    std::array<int, kAxes> local_id;  // the order in which the rank made it
    int stage = 0;                    // of the pipeline
  };

  Layout layout;
  std::vector<JobGroup> groups;
  std::vector<Place> places;  // by rank

  int world() const { return static_cast<int>(places.size()); }
  const Place& place(int rank) const {
    return places[static_cast<std::size_t>(rank)];
  }
  // The group of `rank` on that axis, -1 if it has none.
  int group_of(int rank, Axis axis) const {
    return place(rank).group[static_cast<std::size_t>(axis)];
  }
  int size_of(int rank, Axis axis) const;
};

Result<Topology> make_topology(const Layout& layout, GroupNames names);

}  // namespace postflight::synthetic
