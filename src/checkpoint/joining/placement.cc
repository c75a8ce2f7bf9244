#include "checkpoint/joining/placement.h"

#include <algorithm>

#include "base/bytes.h"

namespace postflight {
namespace {

using enum Placement::Kind;

// A part that consists of more stretches has not been laid out by torch.
constexpr std::size_t kMostStretches = 1 << 16;

std::int64_t total(const Stretches& stretches) {
  std::int64_t sum = 0;
  for (const Stretch& stretch : stretches)
    sum += stretch.length;
  return sum;
}

// The elements from `begin` up to `end` of what the stretches have.
void cut(const Stretches& from, std::int64_t begin, std::int64_t end,
         Stretches& to) {
  std::int64_t at = 0;
  for (const Stretch& stretch : from) {
    const std::int64_t low = std::max(begin, at);
    const std::int64_t high = std::min(end, at + stretch.length);
    if (low < high) {
      const Stretch part{stretch.begin + low - at, high - low};
      if (!to.empty() && to.back().begin + to.back().length == part.begin)
        to.back().length += part.length;
      else
        to.push_back(part);
    }
    at += stretch.length;
  }
}

// Piece `index` of `count`, as chunk() makes them.
Stretch chunk(std::int64_t size, std::int64_t count, std::int64_t index) {
  const std::int64_t length = size == 0 ? 0 : (size - 1) / count + 1;
  const std::int64_t begin =
      length > 0 && index > size / length ? size : length * index;
  const std::int64_t low = std::min(begin, size);
  return {low, std::min(length, size - low)};
}

Stretches divided(const Stretches& from, std::int64_t count,
                  std::int64_t index) {
  const Stretch piece = chunk(total(from), count, index);
  Stretches to;
  cut(from, piece.begin, piece.begin + piece.length, to);
  return to;
}

// Piece `index` of each of `split` pieces.
Result<Stretches> strided(const Stretches& from, std::int64_t split,
                          std::int64_t count, std::int64_t index) {
  const std::int64_t size = total(from);
  if (static_cast<std::uint64_t>(split) > kMostStretches)
    return fail(ErrorKind::kUnsupported,
                "its placement splits a dimension into {} pieces", split);
  Stretches to;
  for (std::int64_t i = 0; i < split; ++i) {
    const Stretch outer = chunk(size, split, i);
    const Stretch inner = chunk(outer.length, count, index);
    const std::int64_t begin = outer.begin + inner.begin;
    cut(from, begin, begin + inner.length, to);
    if (to.size() > kMostStretches)
      return fail(ErrorKind::kUnsupported,
                  "its placement consists of more than {} pieces",
                  kMostStretches);
  }
  return to;
}

// One division of the tensor by a dimension of the mesh.
struct Step {
  std::size_t mesh_dimension = 0;
  bool is_strided = false;
};

// A strided placement whose split is the size of a later dimension of the mesh
// that divides the same dimension of the tensor is made after that.
std::vector<Step> in_order(const MeshPlace& place) {
  std::vector<Step> steps;
  const auto kind = [&](std::size_t i) { return place.placements[i].kind; };
  if (!place.order.empty()) {
    for (const std::size_t i : place.order)
      steps.push_back({i, kind(i) == kStrided});
    return steps;
  }
  const std::size_t dimensions = place.placements.size();
  std::vector<std::vector<std::size_t>> after(dimensions);
  std::vector<bool> is_after(dimensions);
  for (std::size_t i = 0; place.strided_is_order && i < dimensions; ++i) {
    if (kind(i) != kShard)
      continue;
    std::int64_t pieces = place.mesh[i];
    for (std::size_t before = i; before-- > 0;) {
      const Placement& other = place.placements[before];
      if (other.kind != kStrided || is_after[before] ||
          other.dimension != place.placements[i].dimension ||
          other.split != pieces)
        continue;
      after[i].push_back(before);
      is_after[before] = true;
      pieces = checked_multiply(pieces, place.mesh[before]).value_or(0);
    }
  }
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (kind(i) == kReplicate || is_after[i])
      continue;
    steps.push_back({i, kind(i) == kStrided});
    for (const std::size_t later : after[i])
      steps.push_back({later, false});
  }
  return steps;
}

Result<> check(std::span<const std::int64_t> shape, const MeshPlace& place) {
  const std::size_t dimensions = place.mesh.size();
  if (place.coordinate.size() != dimensions ||
      place.placements.size() != dimensions)
    return fail(ErrorKind::kCorrupt,
                "its mesh has {} dimensions, its rank's place in it {}, its "
                "placements {}",
                dimensions, place.coordinate.size(), place.placements.size());
  for (std::size_t i = 0; i < dimensions; ++i) {
    const Placement& placement = place.placements[i];
    if (place.mesh[i] < 1 || place.coordinate[i] < 0 ||
        place.coordinate[i] >= place.mesh[i])
      return fail(ErrorKind::kCorrupt,
                  "its rank is at {} of {} in dimension {} of its mesh",
                  place.coordinate[i], place.mesh[i], i);
    if (placement.kind == kPartial)
      return fail(ErrorKind::kUnsupported,
                  "its ranks hold partial results, which only a reduction in "
                  "the job gives the values of");
    if (placement.kind == kReplicate)
      continue;
    if (placement.dimension < 0 ||
        placement.dimension >= static_cast<std::int64_t>(shape.size()) ||
        placement.split < 1)
      return fail(ErrorKind::kCorrupt,
                  "its placement divides dimension {} of a tensor that has {}",
                  placement.dimension, shape.size());
  }
  std::vector<bool> used(dimensions);
  for (const std::size_t i : place.order) {
    if (i >= dimensions || used[i] || place.placements[i].kind == kReplicate)
      return fail(ErrorKind::kCorrupt,
                  "the order of its placements is not one of its mesh");
    used[i] = true;
  }
  for (std::size_t i = 0; !place.order.empty() && i < dimensions; ++i)
    if (!used[i] && place.placements[i].kind != kReplicate)
      return fail(ErrorKind::kCorrupt,
                  "the order of its placements leaves one out");
  return {};
}

}  // namespace

Result<std::vector<Stretches>> stretches_of(std::span<const std::int64_t> shape,
                                            const MeshPlace& place) {
  TRY(check(shape, place));
  std::vector<Stretches> has;
  for (const std::int64_t size : shape)
    has.push_back(size == 0 ? Stretches() : Stretches{{0, size}});
  for (const Step& step : in_order(place)) {
    const Placement& placement = place.placements[step.mesh_dimension];
    const std::int64_t count = place.mesh[step.mesh_dimension];
    const std::int64_t index = place.coordinate[step.mesh_dimension];
    Stretches& along = has[static_cast<std::size_t>(placement.dimension)];
    along = step.is_strided ? TRY(strided(along, placement.split, count, index))
                            : divided(along, count, index);
  }
  return has;
}

}  // namespace postflight
