#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "synthetic/call_sites.h"
#include "synthetic/random.h"
#include "synthetic/topology.h"

namespace postflight::synthetic {

// One tensor sent or received along the pipeline.
struct Transfer {
  int offset = 0;  // 1: the next stage, -1: the one before
  bool send = false;
  SiteId site = 0;
};

enum class ActionKind : std::uint8_t {
  kCollective,
  kCoalesced,  // a collective of several tensors, closed by an entry of its own
  kTransfers,  // one plain, or a batch
  kHostSync,   // the host waits until its device is done
  kJoin,       // the device waits for what ran beside it
  kCompute,
};

// What a rank's host does next. The flags are for faults.
struct Action {
  ActionKind kind = ActionKind::kCompute;
  Axis axis = Axis::kWorld;
  SiteId site = 0;
  bool beside = false;   // asynchronous: the device continues meanwhile
  bool batched = false;  // kTransfers
  std::uint8_t transfer_count = 0;
  std::array<Transfer, 2> transfers = {};
  std::int64_t nanoseconds = 0;  // kCompute

  bool host_stops = false;    // before this, forever
  bool host_blocks = false;   // in launching this
  bool device_stops = false;  // before this
  bool device_fails = false;  // in this: the others see it end
  bool never_ends = false;    // for any rank, although all have joined
  std::int64_t late = 0;      // nanoseconds that the host comes late

  bool communicates() const {
    return kind == ActionKind::kCollective || kind == ActionKind::kCoalesced ||
           kind == ActionKind::kTransfers;
  }
};

using Actions = std::vector<Action>;

struct ScheduleOptions {
  int steps = 4;
  int microbatches = 4;
  int layers = 2;       // of a stage
  bool batched = true;  // one forward one backward in fused batches;
                        // else all forwards, then all backwards
  bool sequence_parallel = false;
  bool fully_sharded = false;  // only without a pipeline
  bool coalesced = false;      // the optimizer's all_gathers
  bool sync_often = false;     // after each microbatch, not only each step
  bool gloo = false;           // what gloo has no operation for is left out
};

// The program that all ranks of a job run, step by step; ranks of one stage of
// the pipeline do the same, except for overrides.
class Schedule {
 public:
  Schedule(const ScheduleOptions& options, const Layout& layout,
           std::uint64_t seed);

  int steps() const { return options_.steps; }
  const Actions& actions(int rank, int stage, int step) const;
  void override_step(int rank, int step, Actions actions) {
    overrides_[{rank, step}] = std::move(actions);
  }

  const CallSites& sites() const { return sites_; }
  SiteId add_site(CallSite site) {
    sites_.push_back(std::move(site));
    return static_cast<SiteId>(sites_.size() - 1);
  }

 private:
  enum StepKind { kFirst, kPlain, kCheckpoint, kStepKinds };

  void make_sites();
  SiteId site(std::string_view name, std::vector<std::int64_t> input,
              std::vector<std::int64_t> output, Phase phase,
              std::string_view function, std::string_view dtype = "BFloat16");
  Actions make_step(int stage, StepKind kind) const;
  void setup(Actions& actions) const;
  void forward(Actions& actions) const;
  void backward(Actions& actions) const;
  void pipeline(Actions& actions, int stage) const;
  void fill_and_drain(Actions& actions, int stage) const;
  void one_forward_one_backward(Actions& actions, int stage) const;
  void optimizer(Actions& actions, bool checkpoint) const;

  ScheduleOptions options_;
  Layout layout_;
  Random random_;
  CallSites sites_;
  int next_line_ = 40;
  std::vector<std::array<Actions, kStepKinds>> stages_;
  std::map<std::pair<int, int>, Actions> overrides_;

  struct {
    SiteId scatter, parameters, input, gather_keys, scatter_keys;
    SiteId attention, attention_gather, attention_scatter;
    SiteId feed, feed_gather, feed_scatter;
    SiteId dispatch, combine, dispatch_gradient, combine_gradient;
    SiteId feed_gradient, attention_gradient;
    SiteId feed_gradient_gather, feed_gradient_scatter;
    SiteId send_forward, receive_forward, send_backward, receive_backward;
    SiteId shard_gather, shard_gather_again, shard_scatter;
    SiteId bucket_a, bucket_b, gradient_scatter, parameter_gather;
    SiteId parameter_gather_coalesced, norm, loss, barrier;
  } at_ = {};
};

}  // namespace postflight::synthetic
