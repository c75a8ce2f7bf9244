#include "synthetic/cluster/program.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace postflight::synthetic::cluster {

int Group::position(int rank) const {
  return static_cast<int>(std::ranges::lower_bound(members, rank) -
                          members.begin());
}

std::string_view layout_name(Layout layout) {
  constexpr std::string_view kNames[] = {
      "ddp",        "fsdp",           "hsdp",      "tensor", "pp_plain",
      "pp_batched", "pp_interleaved", "pp_uneven", "expert", "ring_context",
      "mesh",       "rooted",         "coalesced", "gloo"};
  return kNames[static_cast<std::size_t>(layout)];
}

namespace {

using Shape = std::vector<std::int64_t>;

class Writer {
 public:
  explicit Writer(const ProgramOptions& options)
      : options_(options), random_(options.seed) {
    made_.ranks.resize(static_cast<std::size_t>(options.world));
    made_.steps.resize(made_.ranks.size());
    hidden_ = 256 << random_.below(4);
    shape_mesh();
    std::vector<int> all;
    for (int rank = 0; rank < options.world; ++rank)
      all.push_back(rank);
    made_.groups.push_back({"0", "default_pg", all});
    inner_ = split("tp", [&](int r) { return r / tensor_; });
    data_ = split("dp", [&](int r) { return r % tensor_ + stage(r) * 8192; });
    stages_ = split("pp", [&](int r) { return r % per_stage(); });
    shards_ = split("shard", [&](int r) { return r / shard_; });
    replicas_ = split("replicate", [&](int r) { return r % shard_; });
  }

  Program write() && {
    for (int rank = 0; rank < options_.world; ++rank) {
      rank_ = rank;
      setup();
      for (int step = 0; step < options_.steps; ++step) {
        made_.steps[at()].push_back(ops().size());
        if (options_.load_ns > 0)
          ops().push_back({.kind = OpKind::kHostWork, .ns = options_.load_ns});
        write_step(step);
        ops().push_back({.kind = OpKind::kJoin});
        finish_step(step);
      }
      made_.steps[at()].push_back(ops().size());
      collective(0, call(barrier(), {1}, {1}, "Float", Phase::kOptimizer));
    }
    return std::move(made_);
  }

 private:
  void shape_mesh() {
    using enum Layout;
    const int world = options_.world;
    const auto divisor = [&](int of, int most) {
      std::vector<int> fits;
      for (int i = 2; i <= most; ++i)
        if (of % i == 0)
          fits.push_back(i);
      return fits.empty() ? 1 : fits[random_.below(fits.size())];
    };
    switch (options_.layout) {
      case kTensor:
      case kExpert:
      case kRingContext:
        tensor_ = divisor(world, 8);
        break;
      case kHsdp:
        shard_ = divisor(world, std::min(8, world / 2));
        break;
      case kPipeline:
      case kPipelineBatched:
      case kPipelineInterleaved:
        pipeline_ = divisor(world, 8);
        break;
      case kMesh:
      case kPipelineUneven:
        tensor_ = divisor(world / 2, 4);
        pipeline_ = divisor(world / tensor_, 4);
        break;
      default:
        break;
    }
  }

  int per_stage() const { return options_.world / pipeline_; }
  int stage(int rank) const { return rank / per_stage(); }
  std::size_t at() const { return static_cast<std::size_t>(rank_); }
  std::vector<Op>& ops() { return made_.ranks[at()]; }

  // One group for each key; for each rank the index of its group, or -1 where
  // all are alone.
  template <class Key>
  std::vector<int> split(std::string_view what, Key&& key) {
    std::map<int, std::vector<int>> members;
    for (int rank = 0; rank < options_.world; ++rank)
      members[key(rank)].push_back(rank);
    std::vector<int> of(static_cast<std::size_t>(options_.world), -1);
    const auto size = members.begin()->second.size();
    if (size < 2 || members.size() < 2)
      return of;
    for (const auto& [one, ranks] : members) {
      for (const int rank : ranks)
        of[static_cast<std::size_t>(rank)] =
            static_cast<int>(made_.groups.size());
      made_.groups.push_back({fmt::format("{}", made_.groups.size()),
                              fmt::format("mesh_{}", what), ranks});
    }
    return of;
  }

  int size_of(int group) const {
    return static_cast<int>(
        made_.groups[static_cast<std::size_t>(group)].members.size());
  }

  SiteId call(std::string_view name, Shape in, Shape out,
              std::string_view dtype, Phase phase, int line = 0) {
    const auto key = std::tuple(name, in, out, dtype, phase, line);
    const auto [found, is_new] =
        calls_.try_emplace(key, static_cast<SiteId>(made_.sites.size()));
    if (is_new)
      made_.sites.push_back(
          {.name = name,
           .inputs = {{std::move(in), dtype}},
           .outputs = {{std::move(out), dtype}},
           .stack =
               stack_of(phase, name, name,
                        100 + 13 * line + static_cast<int>(made_.sites.size())),
           .backward = phase == Phase::kBackward});
    return found->second;
  }

  void collective(int group, SiteId site, bool side = false, int root = -1) {
    if (group < 0 || size_of(group) < 2)
      return;
    ops().push_back({.kind = OpKind::kCollective,
                     .side = side,
                     .group = group,
                     .root = root,
                     .site = site});
  }

  void compute(std::int64_t ns) {
    if (options_.uneven > 0)
      ns += ns / 100 * random_.between(0, options_.uneven);
    ops().push_back({.kind = OpKind::kCompute, .ns = ns});
  }

  void transfers(std::vector<Piece> pieces, bool batched) {
    const int group = stages_[at()] >= 0  ? stages_[at()]
                      : inner_[at()] >= 0 ? inner_[at()]
                                          : 0;
    ops().push_back({.kind = OpKind::kTransfers,
                     .batched = batched,
                     .group = group,
                     .pieces = std::move(pieces)});
  }

  std::string_view barrier() const {
    return gloo() ? "barrier" : "all_reduce_barrier";
  }
  bool gloo() const { return options_.layout == Layout::kGloo; }
  int group_or_world(const std::vector<int>& of) const {
    return of[static_cast<std::size_t>(rank_)] >= 0
               ? of[static_cast<std::size_t>(rank_)]
               : 0;
  }

  void setup() {
    collective(0,
               call("broadcast", {hidden_}, {hidden_}, "Float", Phase::kSetup),
               false, 0);
  }

  void write_step(int step) {
    using enum Layout;
    switch (options_.layout) {
      case kDdp:
      case kGloo:
      case kRooted:
      case kCoalesced:
        return data_parallel(step);
      case kFsdp:
      case kHsdp:
        return sharded();
      case kTensor:
      case kExpert:
      case kRingContext:
        for (int i = 0; i < options_.microbatches; ++i) {
          forward(options_.layers);
          backward(options_.layers);
        }
        return gradients();
      case kPipeline:
        fill_and_drain();
        return gradients();
      case kPipelineBatched:
      case kPipelineUneven:
      case kMesh:
        one_forward_one_backward();
        return gradients();
      case kPipelineInterleaved:
        interleaved();
        return gradients();
    }
  }

  void data_parallel(int step) {
    for (int i = 0; i < options_.layers; ++i)
      compute(options_.compute_ns);
    if (options_.layout == Layout::kRooted) {
      const int root = 0;
      const auto members = static_cast<std::int64_t>(options_.world);
      collective(
          0, call("broadcast", {hidden_}, {hidden_}, "Long", Phase::kForward),
          false, root);
      collective(0,
                 call(rank_ == root ? "scatter" : "scatter",
                      {hidden_ * (rank_ == root ? members : 0)}, {hidden_},
                      "Float", Phase::kForward, rank_ == root ? 1 : 2),
                 false, root);
    }
    for (int i = 0; i < options_.layers; ++i) {
      compute(options_.compute_ns * 2);
      if (options_.layout == Layout::kCoalesced && i + 1 == options_.layers) {
        coalesced();
        continue;
      }
      collective(0,
                 call("all_reduce", {hidden_ * (16 + i)}, {hidden_ * (16 + i)},
                      "Float", Phase::kBackward, i),
                 /*side=*/true);
    }
    if (options_.layout == Layout::kRooted && step % 2 == 0) {
      collective(0, call("reduce", {4}, {4}, "Float", Phase::kOptimizer), false,
                 0);
      const auto members = static_cast<std::int64_t>(options_.world);
      collective(
          0,
          call("gather", {hidden_}, {hidden_ * (rank_ == 0 ? members : 0)},
               "Float", Phase::kOptimizer, rank_ == 0 ? 1 : 2),
          false, 0);
    }
  }

  void coalesced() {
    const auto members = static_cast<std::int64_t>(options_.world);
    Op op{.kind = OpKind::kCoalesced, .group = 0};
    op.site = call("reduce_scatter_tensor_coalesced", {hidden_ * members},
                   {hidden_}, "Float", Phase::kBackward);
    op.pieces.resize(2);
    ops().push_back(std::move(op));
    compute(options_.compute_ns / 4);
    Op gather{.kind = OpKind::kCoalesced, .group = 0};
    gather.site = call("all_gather_into_tensor_coalesced", {hidden_},
                       {hidden_ * members}, "Float", Phase::kOptimizer);
    gather.pieces.resize(2);
    ops().push_back(std::move(gather));
  }

  void sharded() {
    const int group = group_or_world(shards_);
    const std::int64_t count = size_of(group);
    for (int i = 0; i < options_.layers; ++i) {
      collective(group, call("_all_gather_base", {hidden_ * (64 + i)},
                             {hidden_ * (64 + i) * count}, "BFloat16",
                             Phase::kForward, i));
      compute(options_.compute_ns);
    }
    for (int i = options_.layers; i-- > 0;) {
      collective(group, call("_all_gather_base", {hidden_ * (64 + i)},
                             {hidden_ * (64 + i) * count}, "BFloat16",
                             Phase::kBackward, i));
      compute(options_.compute_ns * 2);
      collective(group,
                 call("_reduce_scatter_base", {hidden_ * (64 + i) * count},
                      {hidden_ * (64 + i)}, "Float", Phase::kBackward, i),
                 /*side=*/true);
      if (replicas_[at()] >= 0)
        collective(replicas_[at()],
                   call("all_reduce", {hidden_ * (64 + i)},
                        {hidden_ * (64 + i)}, "Float", Phase::kBackward, i),
                   /*side=*/true);
    }
  }

  int layers_here() const {
    const bool uneven = options_.layout == Layout::kPipelineUneven;
    return uneven ? 1 + stage(rank_) % 3 : std::max(1, options_.layers / 2);
  }

  void forward(int layers) {
    for (int i = 0; i < layers; ++i) {
      compute(options_.compute_ns);
      exchange(Phase::kForward);
    }
  }

  void backward(int layers) {
    for (int i = 0; i < layers; ++i) {
      compute(options_.compute_ns * 2);
      exchange(Phase::kBackward);
    }
    if (options_.sync_often)
      ops().push_back({.kind = OpKind::kSync});
  }

  void exchange(Phase phase) {
    const int group = inner_[at()];
    if (group < 0)
      return;
    const Shape whole = {hidden_, 64};
    if (options_.layout == Layout::kExpert) {
      collective(group, call("all_to_all", whole, whole, "BFloat16", phase, 1));
      compute(options_.compute_ns / 2);
      collective(group, call("all_to_all", whole, whole, "BFloat16", phase, 2));
      return;
    }
    if (options_.layout != Layout::kRingContext) {
      collective(group, call("all_reduce", whole, whole, "BFloat16", phase));
      return;
    }
    const Group& ring = made_.groups[static_cast<std::size_t>(group)];
    const int own = ring.position(rank_);
    const auto count = static_cast<int>(ring.members.size());
    const auto member = [&](int position) {
      return ring.members[static_cast<std::size_t>((position + count) % count)];
    };
    const SiteId site =
        call("send", {hidden_, 32}, {hidden_, 32}, "BFloat16", phase);
    for (int i = 0; i + 1 < std::min(count, 4); ++i) {
      transfers({{member(own + 1), true, site}, {member(own - 1), false, site}},
                true);
      compute(options_.compute_ns / 4);
    }
  }

  void gradients() {
    const int group = pipeline_ > 1 || tensor_ > 1 ? data_[at()] : 0;
    if (group < 0)
      return;
    const std::int64_t count = size_of(group);
    if (options_.seed % 2 == 0) {
      for (int i = 0; i < 2; ++i)
        collective(group,
                   call("all_reduce", {hidden_ * (512 + i)},
                        {hidden_ * (512 + i)}, "Float", Phase::kOptimizer, i),
                   /*side=*/true);
      return;
    }
    collective(group, call("_reduce_scatter_base", {hidden_ * 128 * count},
                           {hidden_ * 128}, "Float", Phase::kOptimizer));
    compute(options_.compute_ns / 2);
    collective(group,
               call("_all_gather_base", {hidden_ * 128},
                    {hidden_ * 128 * count}, "Float", Phase::kOptimizer));
  }

  int neighbour(int offset) const { return rank_ + offset * per_stage(); }
  SiteId activation() {
    return call("send", {hidden_, 128}, {hidden_, 128}, "BFloat16",
                Phase::kForward);
  }
  SiteId gradient() {
    return call("send", {hidden_, 128}, {hidden_, 128}, "BFloat16",
                Phase::kForward, 1);
  }

  void fill_and_drain() {
    const bool first = stage(rank_) == 0;
    const bool last = stage(rank_) == pipeline_ - 1;
    for (int i = 0; i < options_.microbatches; ++i) {
      if (!first)
        transfers({{neighbour(-1), false, activation()}}, false);
      forward(layers_here());
      if (!last)
        transfers({{neighbour(1), true, activation()}}, false);
    }
    for (int i = 0; i < options_.microbatches; ++i) {
      if (!last)
        transfers({{neighbour(1), false, gradient()}}, false);
      backward(layers_here());
      if (!first)
        transfers({{neighbour(-1), true, gradient()}}, false);
    }
  }

  void one_forward_one_backward() {
    const bool first = stage(rank_) == 0;
    const bool last = stage(rank_) == pipeline_ - 1;
    const Piece in{neighbour(-1), false, activation()};
    const Piece out{neighbour(1), true, activation()};
    const Piece back_in{neighbour(1), false, gradient()};
    const Piece back_out{neighbour(-1), true, gradient()};
    const int layers = layers_here();
    const int ahead =
        std::min(pipeline_ - 1 - stage(rank_), options_.microbatches);
    const int steady = options_.microbatches - ahead;
    for (int i = 0; i < ahead; ++i) {
      if (!first)
        transfers({in}, true);
      forward(layers);
      if (!last)
        transfers({out}, true);
    }
    if (steady > 0 && !first)
      transfers({in}, true);
    for (int i = 0; i < steady; ++i) {
      forward(layers);
      if (!last)
        transfers({out, back_in}, true);
      backward(layers);
      if (first)
        continue;
      if (i + 1 == steady)
        transfers({back_out}, true);
      else
        transfers({back_out, in}, true);
    }
    for (int i = 0; i < ahead; ++i) {
      if (!last)
        transfers({back_in}, true);
      backward(layers);
      if (!first)
        transfers({back_out}, true);
    }
  }

  // Two chunks a rank: the last stage's first chunk feeds the first stage's
  // second one.
  void interleaved() {
    // With two stages both neighbours are one rank, and share a stream.
    const int chunks = pipeline_ > 2 ? 2 : 1;
    const int next = stage(rank_) == pipeline_ - 1
                         ? rank_ - (pipeline_ - 1) * per_stage()
                         : neighbour(1);
    const int before = stage(rank_) == 0 ? rank_ + (pipeline_ - 1) * per_stage()
                                         : neighbour(-1);
    const auto pass = [&](bool back) {
      for (int c = 0; c < chunks; ++c)
        for (int i = 0; i < options_.microbatches; ++i) {
          const int place = back ? pipeline_ - 1 - stage(rank_) : stage(rank_);
          const bool head = place == 0 && c == 0;
          const bool tail = place == pipeline_ - 1 && c == chunks - 1;
          const SiteId site = back ? gradient() : activation();
          if (!head)
            transfers({{back ? next : before, false, site}}, false);
          back ? backward(1) : forward(1);
          if (tail)
            continue;
          // isend: what is computed next does not wait for it.
          transfers({{back ? before : next, true, site}}, false);
          ops().back().side = true;
        }
    };
    pass(false);
    pass(true);
  }

  void finish_step(int step) {
    collective(0, call("all_reduce", {1}, {1}, "Float", Phase::kOptimizer, 7));
    compute(options_.compute_ns / 2);
    if (step % 3 == 2)
      collective(0, call(barrier(), {1}, {1}, "Float", Phase::kOptimizer));
    ops().push_back({.kind = OpKind::kSync});
  }

  const ProgramOptions options_;
  Random random_;
  Program made_;
  std::int64_t hidden_ = 256;
  int tensor_ = 1;
  int pipeline_ = 1;
  int shard_ = 1;
  std::vector<int> inner_;
  std::vector<int> data_;
  std::vector<int> stages_;
  std::vector<int> shards_;
  std::vector<int> replicas_;
  int rank_ = 0;
  std::map<
      std::tuple<std::string_view, Shape, Shape, std::string_view, Phase, int>,
      SiteId>
      calls_;
};

}  // namespace

Program make_program(const ProgramOptions& options) {
  return Writer(options).write();
}

}  // namespace postflight::synthetic::cluster
