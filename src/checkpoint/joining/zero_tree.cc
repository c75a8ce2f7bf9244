// Checkpoints of DeepSpeed's ZeRO.
//
// ZeRO divides the optimizer's float32 copy of the parameters among the ranks,
// and each saves its part in a file of its own, without a word about what is in
// it: one flat tensor per parameter group. What the parameters are called and
// which shapes they have is in the files of the model.
//
// Stages 1 and 2 lay the parameters of a group one after the other, pad the end
// for alignment, and give each rank a stretch of that. So the stretches of all
// ranks, one after the other, are the group, and a parameter can lie in the
// stretches of several ranks.
//
// Stage 3 divides each parameter by itself: every rank has ceil(n / ranks)
// elements of each, so that a rank's flat tensors, one after the other, have
// its share of the first parameter, then that of the second.
//
// The moments of Adam lie as the parameters do. A parameter is thus an Assembly
// of stretches of the ranks' flat tensors.
//
//   stage 2, 2 ranks      |  w w w w w w b b | b b b - |
//   stage 3, 2 ranks      |  w w w b b b     | w w w b b - |

#include "checkpoint/joining/zero_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoint/joining/part_item.h"
#include "checkpoint/joining/tree_rewrite.h"

namespace postflight {
namespace {

// A part of a rank's files; if there are no others, the rank itself.
constexpr std::string_view kOptimizerFile = "optim_states";
constexpr std::string_view kOptimizer = "optimizer_state_dict";
constexpr std::string_view kPartitions = "single_partition_of_fp32_groups";
constexpr std::string_view kFlatGroups = "fp32_flat_groups";

struct Parameter {
  std::string_view name;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0;
};

// The flat tensors of one rank, one after the other.
struct Flat {
  std::vector<std::uint32_t> tensors;  // of the tree
  std::vector<std::uint64_t> sizes;    // in elements

  std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : sizes)
      sum += one;
    return sum;
  }
};

// A stretch of a parameter, and where it is in the flat tensors of a rank.
struct Share {
  std::size_t rank = 0;
  std::uint64_t from = 0;
  std::uint64_t begin = 0;  // in the parameter
  std::uint64_t count = 0;
};

// Empty if it is more than any memory.
std::optional<std::uint64_t> parameter_elements(
    std::span<const std::int64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) {
    const auto product =
        size < 0 ? std::nullopt
                 : checked_multiply(elements, static_cast<std::uint64_t>(size));
    if (!product || *product > std::uint64_t{1} << 56)
      return std::nullopt;
    elements = *product;
  }
  return elements;
}

class ZeroTree {
 public:
  explicit ZeroTree(CheckpointContents& checkpoint)
      : checkpoint_(checkpoint),
        tree_(checkpoint.tree),
        from_(checkpoint.tree),
        old_(from_.nodes()) {}

  Result<> join() {
    if (Result<> found = find(); !found) {
      checkpoint_.report("zero_partitions", Severity::kError,
                         fmt::format("its partitions are not joined: {}",
                                     found.error().message()),
                         "");
      from_.copy(0, {}, 0);
      return {};
    }
    checkpoint_.open_item = open_part;
    checkpoint_.joins_ranks = true;
    const std::uint32_t root = tree_.add(0, {}, NodeKind::kDict);
    const std::uint32_t model =
        tree_.add(root, Key::string("model"), NodeKind::kDict);
    for (std::size_t group = 0; group < groups_.size(); ++group)
      add_group(group, weights_, model);
    add_rest_of_model(model);
    tree_.close(model);
    const std::uint32_t optimizer =
        tree_.add(root, Key::string("optimizer"), NodeKind::kDict);
    for (const std::string_view moment : moments_) {
      const std::uint32_t node =
          tree_.add(optimizer, Key::string(moment), NodeKind::kDict);
      for (std::size_t group = 0; group < groups_.size(); ++group)
        if (const auto flats = flats_of(moment))
          add_group(group, *flats, node);
      tree_.close(node);
    }
    add_rest_of_optimizer(optimizer);
    tree_.close(optimizer);
    add_others(root);
    tree_.close(root);
    checkpoint_.properties.emplace_back("zero_stage", std::to_string(stage_));
    checkpoint_.properties.emplace_back("joined_ranks",
                                        std::to_string(ranks_.size()));
    return {};
  }

 private:
  // By group, then rank.
  using Flats = std::vector<std::vector<Flat>>;

  struct Rank {
    std::uint32_t optimizer = kNoIndex;  // its optimizer_state_dict
    std::uint32_t model = kNoIndex;      // its model_states, if it has any
  };

  Result<> find() {
    std::int64_t expected = 0;
    for (const std::uint32_t at : from_.children(0)) {
      Rank rank;
      const std::uint32_t states = from_.child(at, kOptimizerFile);
      rank.optimizer =
          from_.child(states == kNoIndex ? at : states, kOptimizer);
      rank.model = from_.child(at, "model_states");
      if (model_ == kNoIndex && rank.model != kNoIndex)
        model_ = rank.model;
      if (rank.optimizer == kNoIndex)
        continue;
      if (!old_[at].key.is_number())
        return fail(ErrorKind::kUnsupported,
                    "its tensors are divided by tensor or pipeline "
                    "parallelism, too");
      if (old_[at].key.number != expected)
        return fail(ErrorKind::kCorrupt,
                    "the optimizer states of rank {} are missing", expected);
      ++expected;
      ranks_.push_back(rank);
    }
    if (model_ == kNoIndex)
      return fail(ErrorKind::kCorrupt,
                  "there are no model_states, which have the names of the "
                  "parameters");
    const std::uint32_t first = ranks_.front().optimizer;
    stage_ = from_.integer(from_.child(first, "zero_stage")).value_or(1);
    if (from_.child(first, kFlatGroups) != kNoIndex)
      stage_ = 3;
    TRY(check_count(first));
    TRY(find_parameters());
    return find_weights();
  }

  Result<> check_count(std::uint32_t first) const {
    const std::uint32_t node = from_.child(first, "partition_count");
    auto stated = from_.integer(node);
    if (const auto list = from_.numbers(node); list && !list->empty())
      stated = *std::ranges::max_element(*list);
    if (stated && *stated != static_cast<std::int64_t>(ranks_.size()))
      return fail(ErrorKind::kCorrupt,
                  "they are those of {} ranks, but {} have optimizer states",
                  *stated, ranks_.size());
    return {};
  }

  Result<> find_parameters() {
    const std::uint32_t shapes = from_.child(model_, "param_shapes");
    if (shapes == kNoIndex)
      return fail(ErrorKind::kCorrupt,
                  "the model_states have no param_shapes; were they saved by "
                  "a DeepSpeed older than 0.5?");
    std::vector<std::uint32_t> lists = from_.children(shapes);
    if (old_[from_.resolved(shapes)].kind == NodeKind::kDict)
      lists = {shapes};  // older ones have one group
    std::set<std::string_view> names;
    for (const std::uint32_t list : lists) {
      if (stage_ != 3 || groups_.empty())
        groups_.emplace_back();
      for (const std::uint32_t at : from_.children(list)) {
        Parameter parameter{old_[at].key.text, {}, 1};
        const auto shape = from_.numbers(at);
        if (!shape || old_[at].key.is_number())
          return fail(ErrorKind::kCorrupt,
                      "the shape of parameter '{}' cannot be read",
                      parameter.name);
        parameter.shape = *shape;
        const auto elements = parameter_elements(*shape);
        if (!elements)
          return fail(ErrorKind::kCorrupt, "parameter '{}' is too large",
                      parameter.name);
        parameter.elements = *elements;
        if (!names.insert(parameter.name).second)
          return fail(ErrorKind::kCorrupt,
                      "parameter '{}' is there more than once", parameter.name);
        groups_.back().push_back(std::move(parameter));
      }
    }
    return {};
  }

  Result<> find_weights() {
    weights_ = TRY(flats([&](const Rank& rank) {
      return from_.child(rank.optimizer,
                         stage_ == 3 ? kFlatGroups : kPartitions);
    }));
    for (std::size_t group = 0; group < groups_.size(); ++group)
      TRY(check_group(group));
    // The keys that have flat tensors in every group of the first rank.
    for (const std::uint32_t state : states_of(ranks_.front()))
      for (const std::uint32_t at : from_.children(state)) {
        const Tensor* const tensor = from_.tensor_at(at);
        if (tensor != nullptr && tensor->shape.size() == 1 &&
            std::ranges::find(moments_, old_[at].key.text) == moments_.end() &&
            flats_of(old_[at].key.text))
          moments_.push_back(old_[at].key.text);
      }
    return {};
  }

  // A list of flat tensors for each rank. In stage 3 all of them are one group.
  template <class List>
  Result<Flats> flats(List list) const {
    Flats found(groups_.size(), std::vector<Flat>(ranks_.size()));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::vector<std::uint32_t> tensors =
          from_.children(list(ranks_[r]));
      if (stage_ != 3 && tensors.size() != groups_.size())
        return fail(ErrorKind::kCorrupt,
                    "rank {} has {} partitions, but there are {} groups of "
                    "parameters",
                    r, tensors.size(), groups_.size());
      for (std::size_t g = 0; g < tensors.size(); ++g)
        TRY(add_flat(tensors[g], found[stage_ == 3 ? 0 : g][r])
                .in(fmt::format("rank {}", r)));
    }
    return found;
  }

  Result<> add_flat(std::uint32_t node, Flat& to) const {
    const Tensor* const tensor = from_.tensor_at(node);
    if (tensor == nullptr || tensor->shape.size() != 1 || tensor->has_parts())
      return fail(ErrorKind::kCorrupt, "a partition is not a flat tensor");
    to.tensors.push_back(old_[node].index);
    to.sizes.push_back(tensor->elements());
    return {};
  }

  // The partitions must have room for the parameters, and no more than
  // alignment explains: otherwise they are those of others.
  Result<> check_group(std::size_t group) const {
    std::uint64_t room = 0;
    for (const Flat& flat : weights_[group])
      room += flat.size();
    const std::uint64_t ranks = ranks_.size();
    std::uint64_t needed = 0;
    for (const Parameter& parameter : groups_[group])
      needed += stage_ == 3 ? (parameter.elements + ranks - 1) / ranks * ranks
                            : parameter.elements;
    // Each parameter of stage 3 has its own padding. The others pad the group:
    // to an even number for each rank, or more for wider alignments.
    constexpr std::uint64_t kWidest = 4096;
    const std::uint64_t slack = kWidest * ranks;
    const bool is_equal =
        stage_ != 3 ||
        std::ranges::all_of(weights_[group], [&](const Flat& flat) {
          return flat.size() == weights_[group].front().size();
        });
    if (room < needed || room - needed >= slack || !is_equal)
      return fail(ErrorKind::kCorrupt,
                  "the partitions of group {} have {} elements, but its "
                  "parameters need {}",
                  group, room, needed);
    return {};
  }

  // The states of a rank's optimizer, by group.
  std::vector<std::uint32_t> states_of(const Rank& rank) const {
    std::uint32_t base = from_.child(
        rank.optimizer, stage_ == 3 ? kOptimizer : "base_optimizer_state");
    if (base != kNoIndex && old_[from_.resolved(base)].kind == NodeKind::kDict)
      base = from_.child(base, "state");
    return from_.children(base);
  }

  // The moment of every group, if it lies as the weights do.
  std::optional<Flats> flats_of(std::string_view moment) const {
    Flats found(groups_.size(), std::vector<Flat>(ranks_.size()));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::vector<std::uint32_t> states = states_of(ranks_[r]);
      for (std::size_t s = 0; s < states.size(); ++s) {
        const std::size_t group = stage_ == 3 ? 0 : s;
        if (group >= groups_.size() ||
            !add_flat(from_.child(states[s], moment), found[group][r]))
          return std::nullopt;
      }
    }
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (found[g][r].sizes != weights_[g][r].sizes)
          return std::nullopt;
    return found;
  }

  void add_group(std::size_t group, const Flats& flats, std::uint32_t parent) {
    std::uint64_t at = 0;  // in the group, or in each rank's part
    const std::uint64_t ranks = ranks_.size();
    for (const Parameter& parameter : groups_[group]) {
      std::vector<Share> shares;
      if (stage_ == 3) {
        const std::uint64_t share = (parameter.elements + ranks - 1) / ranks;
        for (std::uint64_t r = 0; r < ranks; ++r) {
          const std::uint64_t begin = std::min(r * share, parameter.elements);
          shares.push_back(
              {r, at, begin, std::min(share, parameter.elements - begin)});
        }
        at += share;
      } else {
        std::uint64_t start = 0;
        for (std::size_t r = 0; r < ranks; ++r) {
          const std::uint64_t end = start + flats[group][r].size();
          const std::uint64_t low = std::max(at, start);
          const std::uint64_t high = std::min(at + parameter.elements, end);
          if (low < high)
            shares.push_back({r, low - start, low - at, high - low});
          start = end;
        }
        at += parameter.elements;
      }
      add_parameter(parameter, flats[group], shares, parent);
    }
  }

  void add_parameter(const Parameter& parameter, const std::vector<Flat>& flats,
                     std::span<const Share> shares, std::uint32_t parent) {
    std::vector<AssemblyChunk> chunks;
    for (const Share& share : shares)
      add_chunks(share, flats[share.rank], chunks);
    const std::int64_t length[] = {
        static_cast<std::int64_t>(parameter.elements)};
    const Key key = Key::string(parameter.name);
    Assembly assembly;
    assembly.name = from_.name_below(parent, key);
    const bool any = !flats.empty() && !flats.front().tensors.empty();
    if (any)
      assembly.dtype = tree_.tensors[flats.front().tensors.front()].dtype;
    assembly.shape = tree_.keep(length);
    auto* const kept = tree_.arena.allocate<AssemblyChunk>(chunks.size());
    std::uninitialized_copy(chunks.begin(), chunks.end(), kept);
    assembly.chunks = {kept, chunks.size()};
    add_assembly(checkpoint_, assembly, parent, key);
    // The flat elements are those of the shape, row by row.
    std::vector<std::int64_t> stride(parameter.shape.size(), 1);
    for (std::size_t i = stride.size(); i-- > 1;)
      stride[i - 1] = stride[i] * std::max<std::int64_t>(1, parameter.shape[i]);
    Tensor& made = tree_.tensors.back();
    made.shape = tree_.keep(parameter.shape);
    made.stride = tree_.keep(stride);
    made_.emplace(made_name(parent, parameter.name),
                  static_cast<std::uint32_t>(tree_.tensors.size() - 1));
  }

  static std::pair<std::uint32_t, std::string_view> made_name(
      std::uint32_t parent, std::string_view name) {
    return {parent, name};
  }

  // A share can lie in several of the rank's flat tensors.
  void add_chunks(const Share& share, const Flat& flat,
                  std::vector<AssemblyChunk>& chunks) {
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < flat.tensors.size(); ++i) {
      const std::uint64_t end = start + flat.sizes[i];
      const std::uint64_t low = std::max(share.from, start);
      const std::uint64_t high = std::min(share.from + share.count, end);
      if (low < high) {
        const Tensor& tensor = tree_.tensors[flat.tensors[i]];
        const std::int64_t offset[] = {
            static_cast<std::int64_t>(share.begin + low - share.from)};
        const std::int64_t size[] = {static_cast<std::int64_t>(high - low)};
        const std::int64_t from[] = {static_cast<std::int64_t>(low - start)};
        AssemblyChunk chunk;
        chunk.offsets = tree_.keep(offset);
        chunk.sizes = tree_.keep(size);
        chunk.from = tree_.keep(from);
        chunk.tensor = flat.tensors[i];
        if (!tensor.readable())
          chunk.problem = tree_.keep(
              fmt::format("rank {}: {}", share.rank,
                          tensor.problem.empty() ? "its partition has no bytes"
                                                 : tensor.problem));
        chunks.push_back(chunk);
      }
      start = end;
    }
  }

  // What the module has besides: buffers, frozen parameters, other names of
  // parameters that are shared. Its copies of the parameters are those of lower
  // precision, or in stage 3 empty.
  void add_rest_of_model(std::uint32_t model) {
    std::set<std::string_view> names;
    for (const auto& group : groups_)
      for (const Parameter& parameter : group)
        names.insert(parameter.name);
    const std::uint32_t frozen = from_.child(model_, "frozen_param_fragments");
    for (const std::uint32_t at : from_.children(frozen))
      if (names.insert(old_[at].key.text).second)
        add_frozen(at, model);
    const std::uint32_t shared = from_.child(model_, "shared_params");
    for (const std::uint32_t at : from_.children(shared)) {
      const Value& target = old_[at].value;
      if (!target.is(Kind::kString))
        continue;
      const auto made = made_.find(made_name(model, target.text()));
      if (made == made_.end() || !names.insert(old_[at].key.text).second)
        continue;
      const std::uint32_t node =
          tree_.add(model, old_[at].key, NodeKind::kTensor);
      tree_.nodes[node].index = made->second;
    }
    for (const std::uint32_t at : from_.children(from_.child(model_, "module")))
      if (old_[at].kind == NodeKind::kTensor &&
          names.insert(old_[at].key.text).second)
        from_.copy(at, old_[at].key, model);
  }

  // Whole in stages 1 and 2, divided like the others in stage 3.
  void add_frozen(std::uint32_t at, std::uint32_t model) {
    const std::string_view name = old_[at].key.text;
    const std::uint32_t shapes = from_.child(model_, "frozen_param_shapes");
    const auto shape = from_.numbers(from_.child(shapes, name));
    if (stage_ != 3 || !shape || !parameter_elements(*shape)) {
      from_.copy(at, old_[at].key, model);
      return;
    }
    const Parameter parameter{name, *shape, *parameter_elements(*shape)};
    std::vector<Flat> flats(ranks_.size());
    std::vector<Share> shares;
    const std::uint64_t ranks = ranks_.size();
    const std::uint64_t share = (parameter.elements + ranks - 1) / ranks;
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::uint32_t fragment = from_.child(
          from_.child(ranks_[r].model, "frozen_param_fragments"), name);
      const std::uint64_t begin = std::min(r * share, parameter.elements);
      shares.push_back(
          {r, 0, begin, std::min(share, parameter.elements - begin)});
      // One that is missing leaves a gap, which the tensor says.
      (void)add_flat(fragment, flats[r]);
    }
    add_parameter(parameter, flats, shares, model);
  }

  // Step counts and the like, which are the same for all groups and ranks.
  void add_rest_of_optimizer(std::uint32_t optimizer) {
    const Rank& first = ranks_.front();
    std::set<std::string_view> names(moments_.begin(), moments_.end());
    for (const std::uint32_t state : states_of(first))
      for (const std::uint32_t at : from_.children(state))
        if (names.insert(old_[at].key.text).second)
          from_.copy(at, old_[at].key, optimizer);
    const std::uint32_t base = from_.child(
        first.optimizer, stage_ == 3 ? kOptimizer : "base_optimizer_state");
    const std::uint32_t groups = from_.child(base, "param_groups");
    if (groups != kNoIndex)
      from_.copy(groups, Key::string("param_groups"), optimizer);
  }

  // What else the files of the model say: steps, schedules, the user's own.
  void add_others(std::uint32_t root) {
    for (const std::uint32_t at : from_.children(model_))
      if (!is_part_of_model(old_[at].key.text))
        from_.copy(at, old_[at].key, root);
  }

  CheckpointContents& checkpoint_;
  Tree& tree_;
  TreeRewrite from_;
  const std::span<const Node> old_;
  std::vector<Rank> ranks_;
  std::uint32_t model_ = kNoIndex;
  std::int64_t stage_ = 0;
  std::vector<std::vector<Parameter>> groups_;
  Flats weights_;
  std::vector<std::string_view> moments_;
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> made_;
};

std::uint32_t child_of(const Tree& tree, std::uint32_t node,
                       std::string_view name) {
  if (node == kNoIndex)
    return kNoIndex;
  for (std::uint32_t at = node + 1; at < tree.nodes[node].end;
       at = tree.nodes[at].end)
    if (tree.nodes[at].key.text == name)
      return at;
  return kNoIndex;
}

}  // namespace

bool is_part_of_model(std::string_view key) {
  constexpr std::array<std::string_view, 8> kUsed = {"module",
                                                     "param_shapes",
                                                     "frozen_param_shapes",
                                                     "shared_params",
                                                     "frozen_param_fragments",
                                                     "buffer_names",
                                                     "optimizer",
                                                     "model"};
  return std::ranges::find(kUsed, key) != kUsed.end();
}

bool has_zero_partitions(const Tree& tree) {
  if (tree.nodes.empty())
    return false;
  for (std::uint32_t at = 1; at < tree.nodes.size(); at = tree.nodes[at].end) {
    const std::uint32_t file = child_of(tree, at, kOptimizerFile);
    const std::uint32_t states =
        child_of(tree, file == kNoIndex ? at : file, kOptimizer);
    if (child_of(tree, states, kPartitions) != kNoIndex ||
        child_of(tree, states, kFlatGroups) != kNoIndex)
      return true;
  }
  return false;
}

Result<> join_zero(CheckpointContents& checkpoint) {
  return ZeroTree(checkpoint).join();
}

}  // namespace postflight
