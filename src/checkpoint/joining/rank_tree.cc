// One tree out of those of all ranks.
//
// Each rank of a job saves its own state dict. Three things can stand under a
// key that several ranks have:
//
// - Shards of one tensor. A DTensor says the shape of the whole, the mesh of
//   ranks, where in it this rank is, and how the tensor lies on each dimension
//   of the mesh; a ShardedTensor says the offsets of each shard. So each rank's
//   box of the whole is known, and the whole is an Assembly of these boxes.
//   Ranks that have the same box are replicas: they are compared, by the CRCs
//   of their records where these tell, otherwise when the tensor is read whole.
// - The same thing on all of them: step counts, learning rates, buffers. It is
//   there once.
// - Different things: the state of random generators. Nothing says which is
//   meant, so all of them are kept, by rank: rng[0], rng[1].
//
// Keys that only some ranks have (pipeline stages) are there as these have
// them.
//
// Rejected: joining plain tensors of different contents along a dimension that
// the shapes suggest. A square weight divided by rows looks like one divided by
// columns.

#include "checkpoint/joining/rank_tree.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/glob.h"
#include "checkpoint/joining/part_item.h"
#include "checkpoint/joining/shard_box.h"
#include "checkpoint/joining/tree_rewrite.h"
#include "checkpoint/model/value_repr.h"

namespace postflight {
namespace {

constexpr std::uint64_t kComparedAtOpening = 1 << 20;

struct Member {
  std::int64_t rank = 0;
  std::uint32_t node = 0;  // of the old tree
};

// What several ranks have under one key.
struct Group {
  Key key;
  std::vector<Member> members;
};

class RankTree {
 public:
  explicit RankTree(CheckpointContents& checkpoint)
      : checkpoint_(checkpoint),
        tree_(checkpoint.tree),
        from_(checkpoint.tree),
        old_(from_.nodes()) {}

  Result<> join() {
    checkpoint_.open_item = open_part;
    checkpoint_.joins_ranks = true;
    count_shards();
    Group root;
    for (std::uint32_t at = 1; at < old_.size(); at = old_[at].end)
      root.members.push_back({rank_of(old_[at].key), at});
    add(std::move(root), 0);
    while (!open_.empty()) {
      Frame& frame = open_.back();
      if (frame.next == frame.children.size()) {
        tree_.close(frame.node);
        open_.pop_back();
        continue;
      }
      Group child = std::move(frame.children[frame.next++]);
      const std::uint32_t parent = frame.node;
      add(std::move(child), parent);
    }
    checkpoint_.properties.emplace_back("joined_ranks",
                                        std::to_string(ranks_.size()));
    return {};
  }

 private:
  struct Frame {
    std::uint32_t node = 0;
    std::vector<Group> children;
    std::size_t next = 0;
  };

  // How many sharded tensors are before each node.
  void count_shards() {
    shards_before_.reserve(old_.size() + 1);
    std::uint32_t count = 0;
    for (std::uint32_t at = 0; at < old_.size(); ++at) {
      shards_before_.push_back(count);
      const Tensor* const tensor = from_.tensor_at(at);
      count += tensor != nullptr && is_sharded(*tensor) ? 1 : 0;
    }
    shards_before_.push_back(count);
  }

  bool has_shards(std::uint32_t node) const {
    return shards_before_[old_[node].end] > shards_before_[node];
  }

  std::int64_t rank_of(const Key& key) {
    std::int64_t rank = key.number;
    if (!key.is_number())  // 00_001: several kinds of ranks
      rank = static_cast<std::int64_t>(ranks_.size());
    ranks_.insert(rank);
    return rank;
  }

  void add(Group group, std::uint32_t parent) {
    const auto any = [&](auto is) {
      return std::ranges::any_of(group.members, is);
    };
    const std::uint32_t first = group.members.front().node;
    if (any([&](const Member& member) {
          const Tensor* const tensor = from_.tensor_at(member.node);
          return tensor != nullptr && is_sharded(*tensor);
        })) {
      add_whole(group, parent);
    } else if (const auto dimension = concatenation(group)) {
      add_concatenated(group, parent, *dimension);
    } else if (!has_shards(first) && are_same(group)) {
      from_.copy(first, group.key, parent);
    } else if (merges(group)) {
      open(group, parent);
    } else if (group.members.size() == 1) {
      from_.copy(first, group.key, parent);
    } else {
      keep_all(group, parent);
    }
  }

  // Containers of one kind are merged key by key, if they can be put together
  // again: not objects of a class, whose meaning is not known.
  bool merges(const Group& group) const {
    const Node& first = old_[group.members.front().node];
    const bool is_container =
        first.kind == NodeKind::kDict ||
        ((first.kind == NodeKind::kList || first.kind == NodeKind::kTuple));
    return is_container &&
           std::ranges::all_of(group.members, [&](const Member& member) {
             const Node& node = old_[member.node];
             return node.kind == first.kind && node.type == first.type &&
                    (first.kind == NodeKind::kDict ||
                     node.children == first.children);
           });
  }

  void open(const Group& group, std::uint32_t parent) {
    const std::uint32_t node =
        tree_.add(parent, group.key, old_[group.members.front().node].kind);
    // Its value would be that of one rank.
    tree_.nodes[node].type = old_[group.members.front().node].type;
    Frame frame{node, {}, 0};
    using KeyOrder = std::tuple<Key::Kind, std::string_view, std::int64_t>;
    std::map<KeyOrder, std::size_t> places;
    for (const Member& member : group.members)
      for (const std::uint32_t at : from_.children(member.node)) {
        const Key& key = old_[at].key;
        const auto [found, fresh] = places.emplace(
            KeyOrder(key.kind, key.text, key.number), frame.children.size());
        if (fresh)
          frame.children.push_back({key, {}});
        frame.children[found->second].members.push_back({member.rank, at});
      }
    open_.push_back(std::move(frame));
  }

  void keep_all(const Group& group, std::uint32_t parent) {
    const std::uint32_t node = tree_.add(parent, group.key, NodeKind::kDict);
    for (const Member& member : group.members)
      from_.copy(member.node, Key::integer(member.rank), node);
    tree_.close(node);
  }

  bool are_same(const Group& group) const {
    return std::ranges::all_of(group.members, [&](const Member& member) {
      return is_same(group.members.front().node, member.node);
    });
  }

  bool is_same(std::uint32_t a, std::uint32_t b) const {
    constexpr std::size_t kWhole = std::size_t{1} << 30;
    const std::uint32_t count = old_[a].end - a;
    if (a == b)
      return true;
    if (old_[b].end - b != count)
      return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Node& one = old_[a + i];
      const Node& other = old_[b + i];
      if (one.kind != other.kind || one.type != other.type ||
          one.end - a != other.end - b || (i > 0 && !(one.key == other.key)))
        return false;
      switch (one.kind) {
        case NodeKind::kReference:
          if (one.index - a != other.index - b)
            return false;
          break;
        case NodeKind::kTensor:
          if (!is_same(tree_.tensors[one.index], tree_.tensors[other.index]))
            return false;
          break;
        case NodeKind::kValue:
          if (value_repr(one.value, kWhole) != value_repr(other.value, kWhole))
            return false;
          break;
        default:
          break;
      }
    }
    return true;
  }

  // Unless they are known to be the same, they are kept apart.
  bool is_same(const Tensor& a, const Tensor& b) const {
    if (a.layout != b.layout || is_sharded(a))
      return false;
    if (a.has_parts() || a.storage == kNoIndex)
      return b.storage == kNoIndex && a.dtype == b.dtype &&
             std::ranges::equal(a.shape, b.shape);
    return have_same_bytes(checkpoint_, a, b, most_compared()).value_or(false);
  }

  std::uint64_t most_compared() const {
    return checkpoint_.joining.always ? ~std::uint64_t{0} : kComparedAtOpening;
  }

  // The boxes of all ranks as one tensor.
  void add_whole(const Group& group, std::uint32_t parent) {
    std::vector<std::uint32_t> tensors;
    for (const Member& member : group.members)
      tensors.push_back(from_.tensor_at(member.node) == nullptr
                            ? kNoIndex
                            : old_[member.node].index);
    if (const auto made = made_.find(tensors); made != made_.end()) {
      const std::uint32_t node =
          tree_.add(parent, group.key, NodeKind::kTensor);
      tree_.nodes[node].index = made->second;
      return;
    }
    std::vector<ShardBox> boxes;
    std::string problem;
    const Tensor* first = nullptr;
    for (const Member& member : group.members) {
      const Tensor* const tensor = from_.tensor_at(member.node);
      Result<> added =
          fail(ErrorKind::kCorrupt,
               "rank {} has no shard of it but something else under its key",
               member.rank);
      if (tensor != nullptr && is_sharded(*tensor)) {
        first = first == nullptr ? tensor : first;
        added =
            add_boxes_of(checkpoint_, from_, member.rank, member.node, boxes);
        if (added && !std::ranges::equal(tensor->shape, first->shape))
          added = fail(ErrorKind::kCorrupt,
                       "rank {} has a shard of a ({}), another rank of a ({})",
                       member.rank, fmt::join(tensor->shape, ", "),
                       fmt::join(first->shape, ", "));
      }
      if (!added && problem.empty())
        problem =
            fmt::format("rank {}: {}", member.rank, added.error().message());
    }
    add_boxes(group, parent, *first, std::move(boxes), std::move(problem));
    made_[tensors] = static_cast<std::uint32_t>(tree_.tensors.size() - 1);
  }

  void add_boxes(const Group& group, std::uint32_t parent, const Tensor& whole,
                 std::vector<ShardBox> boxes, std::string problem) {
    Tensor described = whole;  // tensors will move
    if (!boxes.empty()) {
      const Tensor& one = tree_.tensors[boxes.front().tensor];
      described.dtype = one.dtype;
      described.device = one.device;
      for (const ShardBox& box : boxes)
        if (!(tree_.tensors[box.tensor].dtype == one.dtype) && problem.empty())
          problem = fmt::format("rank {} has it as {}, rank {} as {}",
                                boxes.front().rank, one.dtype.name, box.rank,
                                tree_.tensors[box.tensor].dtype.name);
    }
    Assembly assembly;
    assembly.name = from_.name_below(parent, group.key);
    assembly.dtype = described.dtype;
    assembly.shape = described.shape;
    if (problem.empty())
      assembly.chunks = chunks_of(std::move(boxes), problem);
    add_assembly(checkpoint_, assembly, parent, group.key, std::move(problem));
    Tensor& made = tree_.tensors.back();
    made.role = described.role;
    made.requires_grad = described.requires_grad;
    made.device = described.device;
  }

  // ShardBoxes that several ranks have are one chunk and its replicas.
  std::span<AssemblyChunk> chunks_of(std::vector<ShardBox> boxes,
                                     std::string& problem) {
    std::ranges::stable_sort(boxes, [](const ShardBox& a, const ShardBox& b) {
      return std::tie(a.offsets, a.sizes) < std::tie(b.offsets, b.sizes);
    });
    std::vector<AssemblyChunk> chunks;
    for (std::size_t i = 0; i < boxes.size();) {
      const ShardBox& first = boxes[i];
      std::size_t end = i + 1;
      while (end < boxes.size() && boxes[end].offsets == first.offsets &&
             boxes[end].sizes == first.sizes)
        ++end;
      if (std::ranges::find(first.sizes, 0) == first.sizes.end()) {
        const std::span<const ShardBox> same(&boxes[i], end - i);
        chunks.push_back(chunk_of(same, problem));
      }
      i = end;
    }
    auto* const kept = tree_.arena.allocate<AssemblyChunk>(chunks.size());
    std::uninitialized_copy(chunks.begin(), chunks.end(), kept);
    return {kept, chunks.size()};
  }

  AssemblyChunk chunk_of(std::span<const ShardBox> same, std::string& problem) {
    // A readable one, if there is one.
    const auto readable = std::ranges::find_if(same, [&](const ShardBox& box) {
      return tree_.tensors[box.tensor].readable();
    });
    const ShardBox& box = readable == same.end() ? same.front() : *readable;
    const Tensor& local = tree_.tensors[box.tensor];
    AssemblyChunk chunk;
    chunk.offsets = tree_.keep(box.offsets);
    chunk.sizes = tree_.keep(box.sizes);
    chunk.tensor = box.tensor;
    chunk.from = tree_.keep(box.from);
    if (!local.readable())
      chunk.problem = tree_.keep(fmt::format(
          "rank {}: {}", box.rank,
          local.problem.empty() ? "its shard has no bytes" : local.problem));
    std::vector<std::int64_t> replicas;
    for (const ShardBox& other : same) {
      const Tensor& theirs = tree_.tensors[other.tensor];
      if (other.tensor == box.tensor || !theirs.readable())
        continue;
      // Parts of tensors that are the same are the same.
      const std::optional<bool> equal =
          have_same_bytes(checkpoint_, local, theirs, kComparedAtOpening);
      const bool is_all =
          std::ranges::equal(local.shape, box.sizes) && box.from == other.from;
      if (equal == false && is_all && problem.empty())
        problem = fmt::format(
            "ranks {} and {} should hold the same part of it and differ; read "
            "one of them by --rank",
            box.rank, other.rank);
      else if (equal != true && box.from == other.from)
        replicas.push_back(other.tensor);
    }
    chunk.replicas = tree_.keep(replicas);
    return chunk;
  }

  // The dimension along which the user wants such tensors joined.
  std::optional<std::size_t> concatenation(const Group& group) const {
    if (checkpoint_.joining.concatenations.empty() || open_.empty())
      return std::nullopt;
    for (const Member& member : group.members) {
      const Tensor* const tensor = from_.tensor_at(member.node);
      if (tensor == nullptr || tensor->has_parts())
        return std::nullopt;
    }
    std::string path;
    std::vector<Key> keys = {group.key};
    for (std::uint32_t at = open_.back().node; at != 0;
         at = tree_.nodes[at].parent)
      keys.push_back(tree_.nodes[at].key);
    for (std::size_t i = keys.size(); i-- > 0;)
      append_key(keys[i], path);
    for (const Concatenation& one : checkpoint_.joining.concatenations)
      if (glob_matches(one.glob, path))
        return one.dimension;
    return std::nullopt;
  }

  void add_concatenated(const Group& group, std::uint32_t parent,
                        std::size_t dimension) {
    Tensor whole = *from_.tensor_at(group.members.front().node);
    std::vector<std::int64_t> shape(whole.shape.begin(), whole.shape.end());
    std::vector<ShardBox> boxes;
    std::string problem;
    if (dimension >= shape.size()) {
      problem = fmt::format(
          "it has {} dimensions, and was to be joined along "
          "dimension {}",
          shape.size(), dimension);
    } else {
      shape[dimension] = 0;
      for (const Member& member : group.members) {
        const Tensor& local = *from_.tensor_at(member.node);
        ShardBox box;
        box.sizes.assign(local.shape.begin(), local.shape.end());
        box.offsets.resize(box.sizes.size());
        box.from.resize(box.sizes.size());
        for (std::size_t i = 0; i < box.sizes.size() && problem.empty(); ++i)
          if (box.sizes.size() != shape.size() ||
              (i != dimension && box.sizes[i] != shape[i]))
            problem = fmt::format(
                "rank {} has ({}), which does not fit ({}) of another rank "
                "along dimension {}",
                member.rank, fmt::join(local.shape, ", "),
                fmt::join(whole.shape, ", "), dimension);
        if (!problem.empty())
          break;
        box.offsets[dimension] = shape[dimension];
        const auto end = checked_add(shape[dimension], box.sizes[dimension]);
        if (!end) {
          problem = "it is too large";
          break;
        }
        shape[dimension] = *end;
        box.tensor = old_[member.node].index;
        box.rank = member.rank;
        boxes.push_back(std::move(box));
      }
    }
    whole.shape = tree_.keep(shape);
    add_boxes(group, parent, whole, std::move(boxes), std::move(problem));
  }

  CheckpointContents& checkpoint_;
  Tree& tree_;
  TreeRewrite from_;
  const std::span<const Node> old_;
  std::vector<Frame> open_;  // each is a child of the one before
  std::set<std::int64_t> ranks_;
  std::vector<std::uint32_t> shards_before_;
  // By the tensors of the ranks: tied weights stay tied.
  std::map<std::vector<std::uint32_t>, std::uint32_t> made_;
};

}  // namespace

bool has_sharded_tensors(const Tree& tree) {
  return std::ranges::any_of(tree.tensors, is_sharded);
}

Result<> join_ranks(CheckpointContents& checkpoint) {
  return RankTree(checkpoint).join();
}

}  // namespace postflight
