#include "synthetic/schedule.h"

#include <algorithm>

namespace postflight::synthetic {
namespace {

Action collective(Axis axis, SiteId site) {
  return {.kind = ActionKind::kCollective, .axis = axis, .site = site};
}

Action beside(Axis axis, SiteId site) {
  Action action = collective(axis, site);
  action.beside = true;
  return action;
}

Action compute(std::int64_t microseconds) {
  return {.kind = ActionKind::kCompute, .nanoseconds = microseconds * 1000};
}

Action wait(ActionKind kind) {
  return {.kind = kind};
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options, const Layout& layout,
                   std::uint64_t seed)
    : options_(options), layout_(layout), random_(seed) {
  options_.fully_sharded &= layout.pipeline == 1;
  options_.sequence_parallel &= !options.gloo;
  make_sites();
  stages_.resize(static_cast<std::size_t>(layout.pipeline));
  for (int stage = 0; stage < layout.pipeline; ++stage)
    for (const StepKind kind : {kFirst, kPlain, kCheckpoint})
      stages_[static_cast<std::size_t>(stage)][kind] = make_step(stage, kind);
}

const Actions& Schedule::actions(int rank, int stage, int step) const {
  const auto found = overrides_.find({rank, step});
  if (found != overrides_.end())
    return found->second;
  const StepKind kind = step == 0                    ? kFirst
                        : step % 3 == 0              ? kCheckpoint
                        : step == options_.steps - 1 ? kCheckpoint
                                                     : kPlain;
  return stages_[static_cast<std::size_t>(stage)][kind];
}

SiteId Schedule::site(std::string_view name, std::vector<std::int64_t> input,
                      std::vector<std::int64_t> output, Phase phase,
                      std::string_view function, std::string_view dtype) {
  next_line_ += 13;
  return add_site({.name = name,
                   .inputs = {{std::move(input), dtype}},
                   .outputs = {{std::move(output), dtype}},
                   .stack = stack_of(phase, name, function, next_line_),
                   .backward = phase == Phase::kBackward});
}

void Schedule::make_sites() {
  using enum Phase;
  const std::int64_t hidden = 512 << random_.below(4);
  const std::int64_t tokens = 256 << random_.below(4);
  const std::int64_t tp = layout_.tensor, dp = layout_.data;
  const std::int64_t cp = layout_.context;
  const std::vector<std::int64_t> whole = {tokens * tp, 1, hidden};
  const std::vector<std::int64_t> part = {tokens, 1, hidden};
  const std::int64_t shard = hidden * 96 + 64;
  const std::int64_t gradients = hidden * 768 * dp;
  const bool gloo = options_.gloo;
  const std::string_view gather = gloo ? "all_gather" : "_all_gather_base";
  const std::string_view scatter = gloo ? "all_reduce" : "_reduce_scatter_base";
  // gloo has no reduce_scatter and records the list that it gathers into.
  const auto gathered = [&](std::int64_t each, std::int64_t count) {
    return gloo ? std::vector<std::int64_t>{count, each}
                : std::vector<std::int64_t>{each * count};
  };
  const auto scattered = [&](std::int64_t each, std::int64_t count) {
    return gloo ? std::vector<std::int64_t>{each * count}
                : std::vector<std::int64_t>{each};
  };

  at_.scatter =
      site("scatter", {hidden, 64}, {hidden, 64}, kSetup, "scatter_weights");
  at_.parameters =
      site("broadcast", {hidden}, {hidden}, kSetup, "broadcast_parameters");
  at_.input = site("broadcast", {tokens + 1}, {tokens + 1}, kForward,
                   "broadcast_batch", "Long");
  at_.gather_keys = site(gather, {tokens * 128}, gathered(tokens * 128, cp),
                         kForward, "gather_keys");
  at_.scatter_keys =
      site(scatter, {tokens * 128 * cp}, scattered(tokens * 128, cp), kBackward,
           "reduce_key_gradients");

  at_.attention =
      site("all_reduce", whole, whole, kForward, "reduce_attention");
  at_.attention_gather = site(gather, part, whole, kForward, "gather_sequence");
  at_.attention_scatter =
      site(scatter, whole, part, kForward, "scatter_sequence");
  at_.feed = site("all_reduce", whole, whole, kForward, "reduce_feed_forward");
  at_.feed_gather = site(gather, part, whole, kForward, "gather_feed_forward");
  at_.feed_scatter =
      site(scatter, whole, part, kForward, "scatter_feed_forward");
  const std::vector<std::int64_t> routed = {tokens * 2, hidden};
  at_.dispatch = site("all_to_all", routed, routed, kForward, "dispatch");
  at_.combine = site("all_to_all", routed, routed, kForward, "combine");
  at_.combine_gradient =
      site("all_to_all", routed, routed, kBackward, "combine_gradient");
  at_.dispatch_gradient =
      site("all_to_all", routed, routed, kBackward, "dispatch_gradient");
  at_.feed_gradient =
      site("all_reduce", whole, whole, kBackward, "reduce_feed_gradient");
  at_.attention_gradient =
      site("all_reduce", whole, whole, kBackward, "reduce_attention_gradient");
  at_.feed_gradient_gather =
      site(gather, part, whole, kBackward, "gather_gradient");
  at_.feed_gradient_scatter =
      site(scatter, whole, part, kBackward, "scatter_gradient");

  at_.send_forward = site("send", part, part, kForward, "send_forward");
  at_.receive_forward = site("recv", part, part, kForward, "recv_forward");
  at_.send_backward = site("send", part, part, kForward, "send_backward");
  at_.receive_backward = site("recv", part, part, kForward, "recv_backward");

  at_.shard_gather =
      site(gather, {shard}, gathered(shard, dp), kForward, "unshard");
  at_.shard_gather_again =
      site(gather, {shard}, gathered(shard, dp), kBackward, "unshard");
  at_.shard_scatter = site(scatter, {shard * dp}, scattered(shard, dp),
                           kBackward, "reduce_gradients", "Float");

  at_.bucket_a = site("all_reduce", {gradients}, {gradients}, kBackward,
                      "reduce_bucket", "Float");
  at_.bucket_b = site("all_reduce", {gradients / 2 + 64}, {gradients / 2 + 64},
                      kBackward, "reduce_last_bucket", "Float");
  at_.gradient_scatter =
      site(scatter, {gradients}, scattered(gradients / dp, dp), kOptimizer,
           "reduce_scatter_gradients", "Float");
  at_.parameter_gather =
      site(gather, {gradients / dp}, gathered(gradients / dp, dp), kOptimizer,
           "gather_parameters");
  at_.parameter_gather_coalesced =
      site("all_gather_into_tensor_coalesced", {gradients / dp}, {gradients},
           kOptimizer, "gather_parameters");
  CallSite& both = sites_[at_.parameter_gather_coalesced];
  both.inputs.push_back({{hidden}, "BFloat16"});
  both.outputs.push_back({{hidden * dp}, "BFloat16"});
  at_.norm =
      site("all_reduce", {1}, {1}, kOptimizer, "clip_gradients", "Float");
  at_.loss = site("all_reduce", {2}, {2}, kOptimizer, "mean_loss", "Float");
  at_.barrier = site(gloo ? "barrier" : "all_reduce_barrier", {1}, {1},
                     kOptimizer, "save_checkpoint", "Float");
  if (gloo) {
    sites_[at_.barrier].inputs.clear();
    sites_[at_.barrier].outputs.clear();
  }
}

Actions Schedule::make_step(int stage, StepKind kind) const {
  Actions actions;
  if (kind == kFirst)
    setup(actions);
  pipeline(actions, stage);
  optimizer(actions, kind == kCheckpoint);
  return actions;
}

void Schedule::setup(Actions& actions) const {
  if (layout_.tensor > 1) {
    if (!options_.gloo)
      actions.push_back(collective(Axis::kTensor, at_.scatter));
    actions.push_back(collective(Axis::kTensor, at_.parameters));
  }
  if (layout_.data > 1)
    actions.push_back(collective(Axis::kData, at_.parameters));
}

void Schedule::forward(Actions& actions) const {
  if (layout_.tensor > 1)
    actions.push_back(collective(Axis::kTensor, at_.input));
  for (int layer = 0; layer < options_.layers; ++layer) {
    if (options_.fully_sharded && layout_.data > 1)
      actions.push_back(collective(Axis::kData, at_.shard_gather));
    actions.push_back(compute(400));
    if (layout_.context > 1)
      actions.push_back(collective(Axis::kContext, at_.gather_keys));
    const auto reduce = [&](SiteId gather, SiteId scatter, SiteId sum) {
      if (layout_.tensor == 1)
        return;
      if (options_.sequence_parallel) {
        actions.push_back(collective(Axis::kTensor, gather));
        actions.push_back(compute(150));
        actions.push_back(collective(Axis::kTensor, scatter));
      } else {
        actions.push_back(collective(Axis::kTensor, sum));
      }
    };
    reduce(at_.attention_gather, at_.attention_scatter, at_.attention);
    if (layout_.expert > 1) {
      actions.push_back(collective(Axis::kExpert, at_.dispatch));
      actions.push_back(compute(300));
      actions.push_back(collective(Axis::kExpert, at_.combine));
    }
    reduce(at_.feed_gather, at_.feed_scatter, at_.feed);
  }
}

void Schedule::backward(Actions& actions) const {
  for (int layer = 0; layer < options_.layers; ++layer) {
    if (options_.fully_sharded && layout_.data > 1)
      actions.push_back(collective(Axis::kData, at_.shard_gather_again));
    actions.push_back(compute(800));
    if (layout_.expert > 1) {
      actions.push_back(collective(Axis::kExpert, at_.combine_gradient));
      actions.push_back(compute(300));
      actions.push_back(collective(Axis::kExpert, at_.dispatch_gradient));
    }
    if (layout_.tensor > 1) {
      if (options_.sequence_parallel) {
        actions.push_back(collective(Axis::kTensor, at_.feed_gradient_gather));
        actions.push_back(collective(Axis::kTensor, at_.feed_gradient_scatter));
      } else {
        actions.push_back(collective(Axis::kTensor, at_.feed_gradient));
        actions.push_back(collective(Axis::kTensor, at_.attention_gradient));
      }
    }
    if (layout_.context > 1)
      actions.push_back(collective(Axis::kContext, at_.scatter_keys));
    if (options_.fully_sharded && layout_.data > 1)
      actions.push_back(beside(Axis::kData, at_.shard_scatter));
  }
  if (options_.sync_often)
    actions.push_back(wait(ActionKind::kHostSync));
}

void Schedule::pipeline(Actions& actions, int stage) const {
  if (layout_.pipeline == 1) {
    for (int i = 0; i < options_.microbatches; ++i) {
      forward(actions);
      backward(actions);
    }
  } else if (options_.batched) {
    one_forward_one_backward(actions, stage);
  } else {
    fill_and_drain(actions, stage);
  }
}

void Schedule::fill_and_drain(Actions& actions, int stage) const {
  const bool first = stage == 0;
  const bool last = stage == layout_.pipeline - 1;
  const auto transfer = [&](int offset, bool send, SiteId site) {
    Action action{.kind = ActionKind::kTransfers,
                  .axis = Axis::kPipeline,
                  .transfer_count = 1};
    action.transfers[0] = {offset, send, site};
    actions.push_back(action);
  };
  for (int i = 0; i < options_.microbatches; ++i) {
    if (!first)
      transfer(-1, false, at_.receive_forward);
    forward(actions);
    if (!last)
      transfer(1, true, at_.send_forward);
  }
  for (int i = 0; i < options_.microbatches; ++i) {
    if (!last)
      transfer(1, false, at_.receive_backward);
    backward(actions);
    if (!first)
      transfer(-1, true, at_.send_backward);
  }
}

// A stage that sent first and then received would deadlock with a neighbour
// that does the same, so the two are one batch.
void Schedule::one_forward_one_backward(Actions& actions, int stage) const {
  const bool first = stage == 0;
  const bool last = stage == layout_.pipeline - 1;
  const auto batch = [&](std::initializer_list<Transfer> transfers) {
    Action action{.kind = ActionKind::kTransfers,
                  .axis = Axis::kPipeline,
                  .batched = true};
    for (const Transfer& transfer : transfers)
      action.transfers[action.transfer_count++] = transfer;
    actions.push_back(action);
  };
  const Transfer receive_forward = {-1, false, at_.receive_forward};
  const Transfer send_forward = {1, true, at_.send_forward};
  const Transfer receive_backward = {1, false, at_.receive_backward};
  const Transfer send_backward = {-1, true, at_.send_backward};

  const int ahead =
      std::min(layout_.pipeline - 1 - stage, options_.microbatches);
  const int steady = options_.microbatches - ahead;
  for (int i = 0; i < ahead; ++i) {
    if (!first)
      batch({receive_forward});
    forward(actions);
    if (!last)
      batch({send_forward});
  }
  if (steady > 0 && !first)
    batch({receive_forward});
  for (int i = 0; i < steady; ++i) {
    forward(actions);
    if (!last)
      batch({send_forward, receive_backward});
    backward(actions);
    if (!first && i == steady - 1)
      batch({send_backward});
    else if (!first)
      batch({send_backward, receive_forward});
  }
  for (int i = 0; i < ahead; ++i) {
    if (!last)
      batch({receive_backward});
    backward(actions);
    if (!first)
      batch({send_backward});
  }
}

void Schedule::optimizer(Actions& actions, bool checkpoint) const {
  if (layout_.data > 1 && !options_.fully_sharded) {
    if (options_.sequence_parallel || options_.coalesced) {
      actions.push_back(collective(Axis::kData, at_.gradient_scatter));
      actions.push_back(compute(200));
      if (options_.coalesced && !options_.gloo)
        actions.push_back({.kind = ActionKind::kCoalesced,
                           .axis = Axis::kData,
                           .site = at_.parameter_gather_coalesced});
      else
        actions.push_back(collective(Axis::kData, at_.parameter_gather));
    } else {
      actions.push_back(beside(Axis::kData, at_.bucket_a));
      actions.push_back(compute(100));
      actions.push_back(beside(Axis::kData, at_.bucket_a));
      actions.push_back(beside(Axis::kData, at_.bucket_b));
    }
  }
  actions.push_back(wait(ActionKind::kJoin));
  actions.push_back(collective(Axis::kWorld, at_.norm));
  actions.push_back(compute(500));
  if (layout_.data > 1)
    actions.push_back(collective(Axis::kData, at_.loss));
  if (checkpoint)
    actions.push_back(collective(Axis::kWorld, at_.barrier));
  actions.push_back(wait(ActionKind::kHostSync));
}

}  // namespace postflight::synthetic
