#include "checkpoint/joining/shard_box.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/joining/part_item.h"
#include "checkpoint/joining/placement.h"

namespace postflight {
namespace {

class ShardReader {
 public:
  ShardReader(const CheckpointContents& checkpoint, const TreeRewrite& from)
      : checkpoint_(checkpoint), from_(from), old_(from.nodes()) {}

  Result<> add(std::int64_t rank, std::uint32_t node,
               std::vector<ShardBox>& boxes) const {
    const Tensor& tensor = *from_.tensor_at(node);
    return tensor.layout == "DTensor" ? add_local(rank, node, tensor, boxes)
                                      : add_shards(rank, node, tensor, boxes);
  }

 private:
  // A part of a tensor that a rank has, or a reason against it.
  Result<> add_box(std::int64_t rank, std::uint32_t node, ShardBox box,
                   std::vector<ShardBox>& boxes) const {
    const Tensor* const tensor = from_.tensor_at(node);
    if (tensor == nullptr || tensor->has_parts())
      return fail(ErrorKind::kUnsupported, "its shard is not a plain tensor");
    for (std::size_t i = 0; i < box.sizes.size(); ++i)
      if (box.from.size() != tensor->shape.size() ||
          box.from[i] + box.sizes[i] > tensor->shape[i])
        return fail(ErrorKind::kCorrupt,
                    "its shard should be at least ({}) and is ({})",
                    fmt::join(box.sizes, ", "), fmt::join(tensor->shape, ", "));
    box.rank = rank;
    box.tensor = old_[node].index;
    boxes.push_back(std::move(box));
    return {};
  }

  Result<> add_shards(std::int64_t rank, std::uint32_t whole,
                      const Tensor& tensor,
                      std::vector<ShardBox>& boxes) const {
    const std::uint32_t shards = from_.child(whole, "local_shards");
    if (shards == kNoIndex || !tensor.shape_known)
      return fail(ErrorKind::kCorrupt, "its shards are not described");
    for (const std::uint32_t shard : from_.children(shards)) {
      const std::uint32_t metadata = from_.child(shard, "metadata");
      const std::uint32_t node = from_.child(shard, "tensor");
      const auto offsets =
          metadata == kNoIndex
              ? std::nullopt
              : from_.numbers(from_.child(metadata, "shard_offsets"));
      const auto sizes =
          metadata == kNoIndex
              ? std::nullopt
              : from_.numbers(from_.child(metadata, "shard_sizes"));
      if (!offsets || !sizes || offsets->size() != tensor.shape.size() ||
          sizes->size() != tensor.shape.size() ||
          std::ranges::any_of(*offsets, is_negative) ||
          std::ranges::any_of(*sizes, is_negative))
        return fail(ErrorKind::kCorrupt, "a shard has no place in the whole");
      const Tensor* const local = from_.tensor_at(node);
      if (local != nullptr && !std::ranges::equal(local->shape, *sizes))
        return fail(ErrorKind::kCorrupt, "a shard should be ({}) and is ({})",
                    fmt::join(*sizes, ", "), fmt::join(local->shape, ", "));
      ShardBox box{*offsets, *sizes, {}, 0, 0};
      box.from.resize(sizes->size());
      TRY(add_box(rank, node, std::move(box), boxes));
    }
    return {};
  }

  static bool is_negative(std::int64_t number) { return number < 0; }

  Result<> add_local(std::int64_t rank, std::uint32_t whole,
                     const Tensor& tensor, std::vector<ShardBox>& boxes) const {
    const std::uint32_t spec = from_.child(whole, "_spec");
    const std::uint32_t local = from_.child(whole, "_local_tensor");
    if (spec == kNoIndex || local == kNoIndex)
      return fail(ErrorKind::kCorrupt, "its mesh and placements are missing");
    const std::uint32_t mesh = from_.child(spec, "mesh");
    if (mesh == kNoIndex)
      return fail(ErrorKind::kCorrupt, "its mesh is missing");
    const std::uint32_t where = from_.child(mesh, "_coordinate_on_dim");
    if (where != kNoIndex && old_[where].kind == NodeKind::kValue &&
        old_[where].value.is(Kind::kNone))
      return {};  // a rank outside of the mesh has nothing of it
    MeshPlace place = TRY(place_in(mesh, spec, where, rank));
    const std::vector<Stretches> has = TRY(stretches_of(tensor.shape, place));
    TRY(check_local(local, has));
    // Every combination of stretches of its dimensions is a box.
    constexpr std::size_t kMostBoxes = 1 << 16;
    std::size_t count = 1;
    for (const Stretches& along : has)
      count = std::min(kMostBoxes + 1, count * along.size());
    if (count > kMostBoxes)
      return fail(ErrorKind::kUnsupported, "its shard has too many pieces");
    for (std::size_t i = 0; i < count; ++i) {
      ShardBox box;
      std::size_t left = i;
      for (const Stretches& along : has) {
        const std::size_t which = left % along.size();
        left /= along.size();
        std::int64_t from = 0;
        for (std::size_t k = 0; k < which; ++k)
          from += along[k].length;
        box.offsets.push_back(along[which].begin);
        box.sizes.push_back(along[which].length);
        box.from.push_back(from);
      }
      TRY(add_box(rank, local, std::move(box), boxes));
    }
    return {};
  }

  // The part that the placements give the rank must be the one it has.
  Result<> check_local(std::uint32_t node,
                       const std::vector<Stretches>& has) const {
    const Tensor* const local = from_.tensor_at(node);
    if (local == nullptr)
      return fail(ErrorKind::kCorrupt, "its shard is not a tensor");
    std::vector<std::int64_t> wanted;
    for (const Stretches& along : has) {
      std::int64_t size = 0;
      for (const Stretch& stretch : along)
        size += stretch.length;
      wanted.push_back(size);
    }
    const bool both_empty =
        local->elements() == 0 && std::ranges::find(wanted, 0) != wanted.end();
    if (!both_empty && !std::ranges::equal(local->shape, wanted))
      return fail(ErrorKind::kCorrupt,
                  "its placements give it ({}), but its shard is ({})",
                  fmt::join(wanted, ", "), fmt::join(local->shape, ", "));
    return {};
  }

  Result<MeshPlace> place_in(std::uint32_t mesh, std::uint32_t spec,
                             std::uint32_t where, std::int64_t rank) const {
    MeshPlace place;
    TRY(add_mesh(mesh, where, rank, place));
    const std::uint32_t placements = from_.child(spec, "placements");
    if (placements == kNoIndex)
      return fail(ErrorKind::kCorrupt, "its placements are missing");
    bool any_strided = false;
    for (const std::uint32_t at : from_.children(placements)) {
      place.placements.push_back(TRY(placement_at(from_.resolved(at))));
      any_strided |= place.placements.back().kind == Placement::Kind::kStrided;
    }
    const std::uint32_t flag =
        from_.child(spec, "use_strided_shard_as_shard_order");
    if (flag != kNoIndex && old_[flag].value.is(Kind::kBoolean))
      place.strided_is_order = old_[flag].value.boolean();
    const std::uint32_t order = from_.child(spec, "shard_order");
    const NodeKind kind =
        order == kNoIndex ? NodeKind::kValue : old_[from_.resolved(order)].kind;
    if (!any_strided && kind == NodeKind::kTuple)
      for (const std::uint32_t entry : from_.children(order)) {
        // (dimension of the tensor, dimensions of the mesh)
        const std::vector<std::uint32_t> parts = from_.children(entry);
        const auto dimensions =
            parts.size() == 2 ? from_.numbers(parts[1]) : std::nullopt;
        if (!dimensions || std::ranges::any_of(*dimensions, is_negative))
          return fail(ErrorKind::kCorrupt,
                      "the order of its placements cannot be read");
        for (const std::int64_t dimension : *dimensions)
          place.order.push_back(static_cast<std::size_t>(dimension));
      }
    return place;
  }

  Result<> add_mesh(std::uint32_t mesh, std::uint32_t where, std::int64_t rank,
                    MeshPlace& place) const {
    // Since 2.10 the shape is in a layout; before, the mesh is a tensor.
    const std::uint32_t layout = from_.child(mesh, "_layout");
    const std::uint32_t ranks = from_.child(mesh, "mesh");
    if (layout != kNoIndex) {
      const std::uint32_t shape = from_.child(layout, "shape");
      auto sizes = from_.numbers(shape);
      if (!sizes && from_.integer(shape))
        sizes = {*from_.integer(shape)};
      if (!sizes)
        return fail(ErrorKind::kUnsupported,
                    "the shape of its mesh cannot be read");
      place.mesh = *sizes;
    } else if (const Tensor* const map = from_.tensor_at(ranks)) {
      place.mesh.assign(map->shape.begin(), map->shape.end());
    } else {
      return fail(ErrorKind::kUnsupported,
                  "the shape of its mesh is not described");
    }
    if (const auto coordinate =
            where == kNoIndex ? std::nullopt : from_.numbers(where)) {
      place.coordinate = *coordinate;
      return {};
    }
    const Tensor* const map = from_.tensor_at(ranks);
    const auto index = map == nullptr ? std::nullopt : index_of(*map, rank);
    if (!index)
      return fail(ErrorKind::kUnsupported,
                  "its place in the mesh is not described");
    std::uint64_t left = *index;
    place.coordinate.resize(place.mesh.size());
    for (std::size_t i = place.mesh.size(); i-- > 0;) {
      if (place.mesh[i] < 1)
        return fail(ErrorKind::kCorrupt, "its mesh has a dimension of size {}",
                    place.mesh[i]);
      const auto size = static_cast<std::uint64_t>(place.mesh[i]);
      place.coordinate[i] = static_cast<std::int64_t>(left % size);
      left /= size;
    }
    return {};
  }

  // Where a number is in a small tensor of integers.
  std::optional<std::uint64_t> index_of(const Tensor& map,
                                        std::int64_t number) const {
    const std::optional<Bytes> bytes = bytes_in_file(checkpoint_, map);
    if (!bytes || map.dtype.numeric != Numeric::kSigned)
      return std::nullopt;
    for (std::uint64_t i = 0; i < map.elements(); ++i) {
      std::int64_t at = 0;
      if (map.dtype.size == sizeof(std::int32_t)) {
        std::int32_t narrow = 0;
        std::memcpy(&narrow, bytes->data() + i * sizeof(narrow),
                    sizeof(narrow));
        at = narrow;
      } else if (map.dtype.size == sizeof(at)) {
        std::memcpy(&at, bytes->data() + i * sizeof(at), sizeof(at));
      } else {
        return std::nullopt;
      }
      if (at == number)
        return i;
    }
    return std::nullopt;
  }

  Result<Placement> placement_at(std::uint32_t node) const {
    std::string_view name = old_[node].type;
    name.remove_prefix(name.rfind('.') + 1);
    const std::vector<std::uint32_t> parts = from_.children(node);
    const auto number = [&](std::string_view attribute, std::size_t index) {
      const std::uint32_t named = from_.child(node, attribute);
      if (named != kNoIndex)
        return from_.integer(named);
      return index < parts.size() ? from_.integer(parts[index]) : std::nullopt;
    };
    if (name == "Replicate")
      return Placement{};
    if (name.ends_with("Partial"))
      return Placement{Placement::Kind::kPartial};
    const auto dimension = number("dim", 0);
    if (name == "Shard" && dimension)
      return Placement{Placement::Kind::kShard, *dimension};
    const auto split = number("split_factor", 1);
    if (name == "_StridedShard" && dimension && split)
      return Placement{Placement::Kind::kStrided, *dimension, *split};
    return fail(ErrorKind::kUnsupported, "its placement {} is unknown",
                old_[node].type);
  }

  const CheckpointContents& checkpoint_;
  const TreeRewrite& from_;
  const std::span<const Node> old_;
};

}  // namespace

bool is_sharded(const Tensor& tensor) {
  return tensor.layout == "DTensor" || tensor.layout == "ShardedTensor";
}

Result<> add_boxes_of(const CheckpointContents& checkpoint,
                      const TreeRewrite& from, std::int64_t rank,
                      std::uint32_t node, std::vector<ShardBox>& boxes) {
  return ShardReader(checkpoint, from).add(rank, node, boxes);
}

}  // namespace postflight
