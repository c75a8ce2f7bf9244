#include "synthetic/fault.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace postflight::synthetic {
namespace {

struct Spot {
  int rank = 0;
  int step = 0;
  std::size_t index = 0;  // of the action
};

// The first action after `index` on that axis, if it comes in the same step.
std::optional<std::size_t> next_on(const Actions& actions, std::size_t index,
                                   Axis axis) {
  for (std::size_t i = index + 1; i < actions.size(); ++i)
    if (actions[i].communicates() && actions[i].axis == axis)
      return i;
  return std::nullopt;
}

class Planner {
 public:
  Planner(const FaultOptions& options, const Topology& topology,
          Schedule& schedule, Random& random)
      : options_(options),
        topology_(topology),
        schedule_(schedule),
        random_(random) {}

  Result<Planned> plan();

 private:
  using Suits = std::function<bool(int rank, const Actions&, std::size_t)>;

  const Actions& actions(int rank, int step) const {
    return schedule_.actions(rank, topology_.place(rank).stage, step);
  }
  int size(int rank, Axis axis) const { return topology_.size_of(rank, axis); }
  const CallSite& site(const Action& action) const {
    return schedule_.sites()[action.site];
  }
  // Any suitable spot in the second half of the job.
  Result<Spot> find(const Suits& suits);
  void change(const Spot& spot, const std::function<void(Actions&)>& edit);
  void flag(const Spot& spot, bool Action::*which);
  std::vector<int> node_of(const Spot& spot) const;
  const std::vector<int>& group_of(int rank, Axis axis) const;
  void involve_group(const Spot& spot, Axis axis);
  bool is_plain(const Action& action) const;

  Result<Planned> stop_hosts(bool transfers, bool dies);
  Result<Planned> stall();
  Result<Planned> stick();
  Result<Planned> mismatch();
  Result<Planned> skip_or_repeat();
  Result<Planned> swap();
  Result<Planned> leave_group();
  Result<Planned> drop_transfer();
  Result<Planned> deadlock();
  Result<Planned> straggle();
  CallSite changed(const CallSite& from, int members) const;

  const FaultOptions& options_;
  const Topology& topology_;
  Schedule& schedule_;
  Random& random_;
  Planned planned_;
};

Result<Planned> Planner::plan() {
  using enum FaultKind;
  switch (options_.kind) {
    case kHealthy:
      return planned_;
    case kNeverJoined:
      return stop_hosts(false, false);
    case kPipelineStall:
      return stop_hosts(true, false);
    case kNoDump:
      return stop_hosts(false, true);
    case kDeviceStalled:
      return stall();
    case kAllJoinedStuck:
      return stick();
    case kTypeMismatch:
    case kSizeMismatch:
    case kDtypeMismatch:
      return mismatch();
    case kSkipped:
    case kExtra:
      return skip_or_repeat();
    case kOrderSwap:
      return swap();
    case kWrongGroup:
      return leave_group();
    case kP2pUnmatched:
      return drop_transfer();
    case kDeadlock:
      return deadlock();
    case kStraggler:
      return straggle();
  }
  return planned_;
}

Result<Spot> Planner::find(const Suits& suits) {
  const int first = std::max(1, schedule_.steps() / 2);
  if (schedule_.steps() <= first)
    return fail(ErrorKind::kUsage, "a fault needs a job of 2 steps or more");
  for (int attempt = 0; attempt < 200; ++attempt) {
    Spot spot;
    spot.rank = options_.rank >= 0
                    ? options_.rank
                    : static_cast<int>(random_.below(topology_.places.size()));
    spot.step = static_cast<int>(random_.between(first, schedule_.steps() - 1));
    const Actions& all = actions(spot.rank, spot.step);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].communicates() && suits(spot.rank, all, i))
        found.push_back(i);
    if (found.empty())
      continue;
    spot.index = found[random_.below(found.size())];
    return spot;
  }
  return fail(ErrorKind::kUsage, "this job has no place for the fault {}",
              fault_name(options_.kind));
}

void Planner::change(const Spot& spot,
                     const std::function<void(Actions&)>& edit) {
  Actions changed = actions(spot.rank, spot.step);
  edit(changed);
  schedule_.override_step(spot.rank, spot.step, std::move(changed));
}

void Planner::flag(const Spot& spot, bool Action::*which) {
  change(spot, [&](Actions& all) { all[spot.index].*which = true; });
}

// All ranks of the spot's node if they do the same at that spot, else its own.
std::vector<int> Planner::node_of(const Spot& spot) const {
  const int per_node = options_.ranks_per_node;
  const int first = spot.rank / per_node * per_node;
  const int end = std::min(first + per_node, topology_.world());
  std::vector<int> ranks;
  for (int rank = first; rank < end; ++rank)
    if (topology_.place(rank).stage == topology_.place(spot.rank).stage)
      ranks.push_back(rank);
  const bool all = static_cast<int>(ranks.size()) == end - first;
  if (!options_.whole_node || !all || end - first == topology_.world())
    return {spot.rank};
  return ranks;
}

const std::vector<int>& Planner::group_of(int rank, Axis axis) const {
  return topology_
      .groups[static_cast<std::size_t>(topology_.group_of(rank, axis))]
      .members;
}

void Planner::involve_group(const Spot& spot, Axis axis) {
  const std::vector<int>& members = group_of(spot.rank, axis);
  // With few members a missing dump could turn a majority into a tie.
  if (members.size() < 6)
    planned_.involved.insert(planned_.involved.end(), members.begin(),
                             members.end());
}

bool Planner::is_plain(const Action& action) const {
  return action.kind == ActionKind::kCollective &&
         site(action).name != "scatter";
}

Result<Planned> Planner::stop_hosts(bool transfers, bool dies) {
  const Spot spot = TRY(find([&](int rank, const Actions& all, std::size_t i) {
    return (all[i].kind == ActionKind::kTransfers) == transfers &&
           size(rank, all[i].axis) > 1;
  }));
  for (const int rank : node_of(spot)) {
    flag({rank, spot.step, spot.index}, &Action::host_stops);
    planned_.truth.culprits.push_back(rank);
  }
  if (dies) {
    planned_.truth.kind = "no_dump";
    planned_.truth.accept = {"never_joined"};
    planned_.dead = planned_.truth.culprits;
    return planned_;
  }
  planned_.truth.kind = "never_joined";
  if (transfers)
    planned_.truth.accept = {"p2p_unmatched"};
  return planned_;
}

Result<Planned> Planner::stall() {
  const Spot spot = TRY(find([&](int, const Actions& all, std::size_t i) {
    return is_plain(all[i]) && !all[i].beside &&
           site(all[i]).name != "broadcast" && next_on(all, i, all[i].axis);
  }));
  const bool fails = !options_.timing || random_.chance(40);
  // Without start times a stalled device looks like all the others.
  const bool hidden = !options_.timing && random_.chance(50);
  flag(spot, fails && !hidden ? &Action::device_fails : &Action::device_stops);
  if (hidden) {
    planned_.truth.kind = "all_joined_stuck";
    planned_.truth.accept = {"inconclusive"};
    planned_.truth.note = "start times were not recorded";
    return planned_;
  }
  planned_.truth.kind = "device_stalled";
  planned_.truth.culprits = {spot.rank};
  // The dump of a rank that has not finished what others have may be older.
  if (!options_.timing)
    planned_.truth.also = {{"all_joined_stuck", {}}, {"inconclusive", {}}};
  involve_group(spot, actions(spot.rank, spot.step)[spot.index].axis);
  return planned_;
}

Result<Planned> Planner::stick() {
  const Spot spot = TRY(find([&](int, const Actions& all, std::size_t i) {
    return all[i].kind != ActionKind::kTransfers;
  }));
  flag(spot, &Action::never_ends);
  planned_.truth.kind = "all_joined_stuck";
  planned_.truth.accept = {"inconclusive"};
  return planned_;
}

CallSite Planner::changed(const CallSite& from, int members) const {
  CallSite to = from;
  switch (options_.kind) {
    case FaultKind::kTypeMismatch:
      if (from.name == "all_reduce" && !from.inputs.empty()) {
        to.name = options_.gloo ? "all_gather" : "_all_gather_base";
        to.outputs[0].shape = from.inputs[0].shape;
        if (options_.gloo)
          to.outputs[0].shape.insert(to.outputs[0].shape.begin(), members);
        else
          to.outputs[0].shape[0] *= members;
      } else {
        to.name = "all_reduce";
        if (to.inputs.empty())
          to.inputs = {{{1}, "Float"}};
        to.outputs = to.inputs;
      }
      return to;
    case FaultKind::kSizeMismatch:
      to.inputs[0].shape[0] *= 2;
      if (from.name != "all_to_all")
        to.outputs[0].shape.back() *= 2;
      if (from.name == "all_reduce" || from.name == "broadcast")
        to.outputs = to.inputs;
      return to;
    default:
      for (std::vector<Tensor>* tensors : {&to.inputs, &to.outputs})
        for (Tensor& tensor : *tensors)
          tensor.dtype = tensor.dtype == "Float" ? "Half" : "Float";
      return to;
  }
}

Result<Planned> Planner::mismatch() {
  using enum FaultKind;
  const Spot spot = TRY(find([&](int rank, const Actions& all, std::size_t i) {
    return is_plain(all[i]) && size(rank, all[i].axis) > 2 &&
           (options_.kind == kTypeMismatch ||
            site(all[i]).name.find("barrier") == std::string_view::npos);
  }));
  const Action old = actions(spot.rank, spot.step)[spot.index];
  const SiteId made =
      schedule_.add_site(changed(site(old), size(spot.rank, old.axis)));
  const bool blocks =
      options_.kind == kTypeMismatch && !options_.gloo && random_.chance(40);
  change(spot, [&](Actions& all) {
    all[spot.index].site = made;
    all[spot.index].host_blocks = blocks;
  });
  if (options_.kind != kTypeMismatch && options_.full_history &&
      !options_.gloo) {
    // The others do not notice, and hang in the next operation.
    const auto next =
        next_on(actions(spot.rank, spot.step), spot.index, old.axis);
    const bool goes_on =
        options_.kind == kSizeMismatch && next && random_.chance(30);
    if (goes_on)
      flag({spot.rank, spot.step, *next}, &Action::never_ends);
    planned_.disagreement = goes_on              ? Disagreement::kNobodyNotices
                            : random_.chance(40) ? Disagreement::kMinoritySticks
                                                 : Disagreement::kAllStick;
  }
  planned_.truth.kind = options_.kind == kTypeMismatch   ? "type_mismatch"
                        : options_.kind == kSizeMismatch ? "size_mismatch"
                                                         : "dtype_mismatch";
  // An operation that was never launched is not active.
  if (blocks && !options_.full_history)
    planned_.truth.accept = {"never_joined"};
  planned_.truth.culprits = {spot.rank};
  involve_group(spot, old.axis);
  return planned_;
}

Result<Planned> Planner::skip_or_repeat() {
  const Spot spot = TRY(find([&](int rank, const Actions& all, std::size_t i) {
    const auto next = next_on(all, i, all[i].axis);
    return is_plain(all[i]) && size(rank, all[i].axis) > 2 && next &&
           is_plain(all[*next]) && !site(all[i]).agrees_with(site(all[*next]));
  }));
  const Actions& all = actions(spot.rank, spot.step);
  const Axis axis = all[spot.index].axis;
  const CallSite& one = site(all[spot.index]);
  const CallSite& other = site(all[*next_on(all, spot.index, axis)]);
  const bool skipped = options_.kind == FaultKind::kSkipped;
  planned_.truth.kind =
      one.name != other.name ? "type_mismatch" : "size_mismatch";
  planned_.truth.accept = {"type_mismatch", "size_mismatch", "dtype_mismatch",
                           "never_joined", "order_mismatch"};
  planned_.truth.culprits = {spot.rank};
  planned_.truth.findings = {skipped ? "skipped_operation" : "extra_operation"};
  involve_group(spot, axis);
  change(spot, [&](Actions& edited) {
    const auto at = edited.begin() + static_cast<std::ptrdiff_t>(spot.index);
    if (skipped)
      edited.erase(at);
    else
      edited.insert(at, Action(*at));
  });
  return planned_;
}

// Two groups must share two ranks for the order to matter; the world shares
// all.
Result<Planned> Planner::swap() {
  std::size_t second = 0;
  const auto partner = [&](const Actions& all,
                           std::size_t i) -> std::optional<std::size_t> {
    for (std::size_t j = i + 1; j < all.size(); ++j)
      if (all[j].communicates())
        return j;
    return std::nullopt;
  };
  const auto fits = [&](const Action& action) {
    return is_plain(action) && !action.beside;
  };
  const Spot spot = TRY(find([&](int rank, const Actions& all, std::size_t i) {
    const auto j = partner(all, i);
    return j && fits(all[i]) && fits(all[*j]) && all[i].axis != all[*j].axis &&
           size(rank, all[i].axis) > 1 &&
           (all[i].axis == Axis::kWorld || all[*j].axis == Axis::kWorld);
  }));
  const Actions& all = actions(spot.rank, spot.step);
  second = *partner(all, spot.index);
  const Axis inner = all[spot.index].axis == Axis::kWorld
                         ? all[second].axis
                         : all[spot.index].axis;
  change(spot, [&](Actions& edited) {
    std::swap(edited[spot.index], edited[second]);
  });
  planned_.truth.kind = "order_mismatch";
  planned_.truth.culprits = {spot.rank};
  // Of two that differ, either may be right.
  if (size(spot.rank, inner) == 2)
    planned_.truth.also = {{"order_mismatch", group_of(spot.rank, inner)}};
  involve_group(spot, inner);
  return planned_;
}

Result<Planned> Planner::leave_group() {
  Axis other = Axis::kWorld;
  const Spot spot = TRY(find([&](int rank, const Actions& all, std::size_t i) {
    return is_plain(all[i]) && !all[i].beside && all[i].axis != Axis::kWorld &&
           size(rank, all[i].axis) > 1;
  }));
  const Axis old = actions(spot.rank, spot.step)[spot.index].axis;
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kData})
    if (axis != old && size(spot.rank, axis) > 2)
      other = axis;
  flag(spot, &Action::host_stops);
  change(spot, [&](Actions& all) {
    all[spot.index].host_stops = false;
    all[spot.index].axis = other;
  });
  planned_.truth.kind = "order_mismatch";
  planned_.truth.accept = {"never_joined", "type_mismatch", "size_mismatch",
                           "dtype_mismatch"};
  planned_.truth.culprits = {spot.rank};
  involve_group(spot, old);
  involve_group(spot, other);
  return planned_;
}

Result<Planned> Planner::drop_transfer() {
  const Spot spot = TRY(find([&](int, const Actions& all, std::size_t i) {
    return all[i].kind == ActionKind::kTransfers;
  }));
  const Action old = actions(spot.rank, spot.step)[spot.index];
  const std::size_t which = random_.below(old.transfer_count);
  change(spot, [&](Actions& all) {
    Action& action = all[spot.index];
    if (action.transfer_count == 1) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(spot.index));
      return;
    }
    action.transfers[0] = old.transfers[1 - which];
    action.transfer_count = 1;
  });
  const auto group =
      static_cast<std::size_t>(topology_.group_of(spot.rank, Axis::kPipeline));
  const auto axis = static_cast<std::size_t>(Axis::kPipeline);
  const int peer = topology_.groups[group].members[static_cast<std::size_t>(
      topology_.place(spot.rank).position[axis] + old.transfers[which].offset)];
  planned_.truth.kind = "p2p_unmatched";
  planned_.truth.accept = {"never_joined"};
  planned_.truth.culprits = {spot.rank};
  planned_.truth.also = {
      {"p2p_unmatched",
       {std::min(spot.rank, peer), std::max(spot.rank, peer)}}};
  planned_.involved = {peer};
  involve_group(spot, Axis::kPipeline);
  return planned_;
}

// Two neighbours split their batches, and both receive first.
Result<Planned> Planner::deadlock() {
  const auto splits = [](const Action& action, int offset) {
    return action.kind == ActionKind::kTransfers &&
           action.transfer_count == 2 && action.transfers[0].offset == offset;
  };
  const Spot spot = TRY(find([&](int, const Actions& all, std::size_t i) {
    return splits(all[i], 1);
  }));
  // The n-th fused batch with the next stage matches the neighbour's n-th.
  const auto count = [&](const Actions& all, std::size_t until) {
    return std::count_if(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(until),
        [&](const Action& action) { return splits(action, 1); });
  };
  const auto nth = count(actions(spot.rank, spot.step), spot.index);
  const auto axis = static_cast<std::size_t>(Axis::kPipeline);
  const auto group =
      static_cast<std::size_t>(topology_.group_of(spot.rank, Axis::kPipeline));
  const int peer = topology_.groups[group].members[static_cast<std::size_t>(
      topology_.place(spot.rank).position[axis] + 1)];
  std::optional<std::size_t> theirs;
  const Actions& others = actions(peer, spot.step);
  std::ptrdiff_t seen = 0;
  for (std::size_t i = 0; i < others.size() && !theirs; ++i)
    if (splits(others[i], -1) && seen++ == nth)
      theirs = i;
  const auto split = [](std::size_t index) {
    return [index](Actions& all) {
      Action receive = all[index];
      const bool first = !receive.transfers[0].send;
      receive.transfer_count = 1;
      Action send = receive;
      receive.transfers[0] = all[index].transfers[first ? 0 : 1];
      send.transfers[0] = all[index].transfers[first ? 1 : 0];
      all[index] = send;
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(index), receive);
    };
  };
  change(spot, split(spot.index));
  if (theirs)
    change({peer, spot.step, *theirs}, split(*theirs));
  planned_.truth.kind = "order_mismatch";
  planned_.truth.accept = {"p2p_unmatched"};
  planned_.truth.culprits = {spot.rank, peer};
  std::ranges::sort(planned_.truth.culprits);
  planned_.involved = planned_.truth.culprits;
  return planned_;
}

Result<Planned> Planner::straggle() {
  const int rank =
      options_.rank >= 0
          ? options_.rank
          : static_cast<int>(random_.below(topology_.places.size()));
  const std::int64_t late = random_.between(30, 80) * 1'000'000;
  for (int step = 0; step < schedule_.steps(); ++step) {
    std::size_t seen = 0;
    change({rank, step, 0}, [&](Actions& all) {
      for (Action& action : all)
        if (action.communicates() && (options_.gloo || seen++ % 3 == 0))
          action.late = late + random_.between(0, 5'000'000);
    });
  }
  planned_.truth.kind = "straggler";
  planned_.truth.culprits = {rank};
  if (!options_.full_history)
    planned_.truth.also = {{"healthy", {}}, {"inconclusive", {}}};
  return planned_;
}

}  // namespace

Result<Planned> plan_fault(const FaultOptions& options,
                           const Topology& topology, Schedule& schedule,
                           Random& random) {
  if (options.rank >= topology.world())
    return fail(ErrorKind::kUsage, "the job has {} ranks and no rank {}",
                topology.world(), options.rank);
  return Planner(options, topology, schedule, random).plan();
}

}  // namespace postflight::synthetic
