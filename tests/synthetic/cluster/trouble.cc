#include "synthetic/cluster/trouble.h"

#include <algorithm>
#include <functional>

namespace postflight::synthetic::cluster {

std::string_view trouble_name(Trouble trouble) {
  constexpr std::string_view kNames[] = {"none",
                                         "slow_link",
                                         "straggler",
                                         "host_stops",
                                         "host_stops_p2p",
                                         "node_stops",
                                         "raises",
                                         "raises_no_dump",
                                         "killed",
                                         "node_killed",
                                         "several_stop",
                                         "device_stops",
                                         "device_bcast",
                                         "device_p2p",
                                         "several_devices",
                                         "device_fails",
                                         "host_and_device",
                                         "stuck",
                                         "stuck_p2p",
                                         "type",
                                         "type_unlaunched",
                                         "size",
                                         "size_unnoticed",
                                         "dtype",
                                         "skips",
                                         "adds",
                                         "order",
                                         "wrong_group",
                                         "drops_send",
                                         "drops_receive",
                                         "transfer_sizes",
                                         "leaves_loop"};
  static_assert(std::size(kNames) == kTroubles);
  return kNames[static_cast<std::size_t>(trouble)];
}

namespace {

struct Spot {
  int rank = 0;
  std::size_t index = 0;
};

class Maker {
 public:
  Maker(Trouble trouble, bool timing, Program& program, Random& random)
      : trouble_(trouble),
        timing_(timing),
        program_(program),
        random_(random) {}

  std::optional<Plan> make() {
    return place() ? std::optional(plan_) : std::nullopt;
  }

 private:
  using Suits = std::function<bool(int rank, const Op&)>;

  Op& op(const Spot& spot) { return program_.of(spot.rank)[spot.index]; }
  int members(int group) const {
    return static_cast<int>(
        program_.groups[static_cast<std::size_t>(group)].members.size());
  }
  std::string_view name(const Op& op) const {
    return program_.sites[op.site].name;
  }
  bool is_barrier(const Op& op) const {
    return name(op).find("barrier") != std::string_view::npos;
  }
  // All ranks of its group must have joined before anybody goes on.
  bool needs_all(const Op& op) const {
    return op.kind == OpKind::kCollective && op.root < 0;
  }

  std::optional<Spot> find(const Suits& suits, int wanted = -1) {
    for (int attempt = 0; attempt < 300; ++attempt) {
      Spot spot;
      spot.rank = wanted >= 0
                      ? wanted
                      : static_cast<int>(random_.below(program_.ranks.size()));
      const std::vector<Op>& ops = program_.of(spot.rank);
      const std::vector<std::size_t>& steps =
          program_.steps[static_cast<std::size_t>(spot.rank)];
      const std::size_t first = steps[steps.size() / 2];
      spot.index = first + random_.below(steps.back() - first);
      if (ops[spot.index].communicates() && suits(spot.rank, ops[spot.index]))
        return spot;
    }
    return std::nullopt;
  }

  void involve(int group) {
    const std::vector<int>& all =
        program_.groups[static_cast<std::size_t>(group)].members;
    if (all.size() < 8)
      plan_.involved.insert(plan_.involved.end(), all.begin(), all.end());
  }

  void accuse(std::string_view kind, std::vector<int> ranks,
              std::vector<std::string> accept = {}) {
    std::ranges::sort(ranks);
    plan_.truth.kind = kind;
    plan_.truth.culprits = std::move(ranks);
    plan_.truth.accept = std::move(accept);
  }

  bool place();
  bool stop(int count, bool transfers);
  bool stop_node();
  bool kill(bool node);
  bool stop_device(const Suits& suits, int count);
  bool differ();
  bool swap();
  bool misplace();
  bool drop(bool send);
  bool leave();

  const Trouble trouble_;
  const bool timing_;
  Program& program_;
  Random& random_;
  Plan plan_;
};

bool Maker::place() {
  using enum Trouble;
  const auto collective = [](int, const Op& op) {
    return op.kind == OpKind::kCollective || op.kind == OpKind::kCoalesced;
  };
  const auto transfer = [](int, const Op& op) {
    return op.kind == OpKind::kTransfers;
  };
  switch (trouble_) {
    case kNone:
      return true;
    case kSlowLink:
      plan_.slow_group =
          static_cast<int>(random_.below(program_.groups.size()));
      return true;
    case kStraggler:
      plan_.late_rank = static_cast<int>(random_.below(program_.ranks.size()));
      accuse("straggler", {plan_.late_rank});
      return true;
    case kHostStops:
      return stop(1, false);
    case kHostStopsBeforeTransfer:
      return stop(1, true);
    case kSeveralStop:
      return stop(2, false);
    case kNodeStops:
      return stop_node();
    case kRaises:
      if (!stop(1, random_.chance(30)))
        return false;
      plan_.early = plan_.truth.culprits;
      return true;
    case kRaisesNoDump:
    case kKilled:
      return kill(false);
    case kNodeKilled:
      return kill(true);
    case kDeviceStops:
      return stop_device(
          [&](int, const Op& op) { return needs_all(op) && !op.side; }, 1);
    case kSeveralDevicesStop:
      return stop_device(
          [&](int, const Op& op) { return needs_all(op) && !op.side; }, 2);
    case kDeviceStopsBeforeBroadcast:
      return stop_device([](int, const Op& op) { return op.root >= 0; }, 1);
    case kDeviceStopsBeforeTransfer:
      return stop_device(transfer, 1);
    case kDeviceFails: {
      const auto spot =
          find([&](int, const Op& op) { return needs_all(op) && !op.side; });
      if (!spot)
        return false;
      op(*spot).device_fails = true;
      accuse("device_stalled", {spot->rank});
      involve(op(*spot).group);
      return true;
    }
    case kHostAndDevice: {
      if (!timing_ ||
          !stop_device(
              [&](int, const Op& op) { return needs_all(op) && !op.side; }, 1))
        return false;
      const Truth device = plan_.truth;
      const auto spot = find([&](int rank, const Op& op) {
        return collective(rank, op) && rank != device.culprits[0];
      });
      if (!spot)
        return false;
      op(*spot).host_stops = true;
      accuse("never_joined", {spot->rank});
      plan_.truth.also = {{"device_stalled", device.culprits}};
      plan_.involved.push_back(spot->rank);
      return true;
    }
    case kStuck:
    case kStuckTransfer: {
      const auto spot = trouble_ == kStuck ? find(collective) : find(transfer);
      if (!spot)
        return false;
      op(*spot).never_ends = true;
      accuse("all_joined_stuck", {}, {"inconclusive"});
      return true;
    }
    case kType:
    case kTypeUnlaunched:
    case kSize:
    case kSizeUnnoticed:
    case kDtype:
    case kSkips:
    case kAdds:
      return differ();
    case kOrder:
      return swap();
    case kWrongGroup:
      return misplace();
    case kDropsSend:
      return drop(true);
    case kDropsReceive:
      return drop(false);
    case kTransferSizes: {
      const auto spot = find(transfer);
      if (!spot)
        return false;
      Op& changed = op(*spot);
      CallSite site = program_.sites[changed.pieces[0].site];
      site.inputs[0].shape[0] *= 2;
      site.outputs[0].shape[0] *= 2;
      program_.sites.push_back(site);
      changed.pieces[0].site = static_cast<SiteId>(program_.sites.size() - 1);
      changed.never_ends = true;
      std::vector<int> both = {spot->rank, changed.pieces[0].peer};
      accuse("size_mismatch", both);
      plan_.truth.also = {{"size_mismatch", {spot->rank}}};
      plan_.involved = both;
      return true;
    }
    case kLeavesLoop:
      return leave();
  }
  return false;
}

bool Maker::stop(int count, bool transfers) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) {
    const auto spot = find([&](int rank, const Op& op) {
      return (op.kind == OpKind::kTransfers) == transfers &&
             std::ranges::count(ranks, rank) == 0;
    });
    if (!spot)
      return false;
    op(*spot).host_stops = true;
    ranks.push_back(spot->rank);
  }
  accuse("never_joined", ranks,
         transfers ? std::vector<std::string>{"p2p_unmatched"}
                   : std::vector<std::string>{});
  return true;
}

bool Maker::stop_node() {
  const auto spot =
      find([](int, const Op& op) { return op.kind == OpKind::kCollective; });
  if (!spot || program_.world() < 16)
    return false;
  std::vector<int> ranks;
  const int first = spot->rank / 4 * 4;
  for (int rank = first; rank < first + 4 && rank < program_.world(); ++rank) {
    std::size_t index = std::min(spot->index, program_.of(rank).size() - 1);
    while (!program_.of(rank)[index].communicates() && index > 0)
      --index;
    program_.of(rank)[index].host_stops = true;
    ranks.push_back(rank);
  }
  accuse("never_joined", ranks);
  return true;
}

bool Maker::kill(bool node) {
  if (node ? !stop_node() : !stop(1, random_.chance(30)))
    return false;
  plan_.truth.kind = "no_dump";
  plan_.truth.accept = {"never_joined"};
  plan_.no_dump = plan_.truth.culprits;
  return true;
}

bool Maker::stop_device(const Suits& suits, int count) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) {
    const auto spot = find([&](int rank, const Op& op) {
      return suits(rank, op) && std::ranges::count(ranks, rank) == 0;
    });
    if (!spot)
      return false;
    op(*spot).device_stops = true;
    ranks.push_back(spot->rank);
    involve(op(*spot).group);
  }
  accuse("device_stalled", ranks);
  if (!timing_) {
    // All ranks look alike.
    accuse("all_joined_stuck", {}, {"inconclusive"});
  }
  return true;
}

bool Maker::differ() {
  using enum Trouble;
  const bool shifts = trouble_ == kSkips || trouble_ == kAdds;
  const auto spot = find([&](int rank, const Op& op) {
    if (!needs_all(op) || members(op.group) < 3 || is_barrier(op))
      return false;
    if (!shifts)
      return true;
    // Without another call after it nobody could tell.
    const std::vector<Op>& ops = program_.of(rank);
    for (auto at = static_cast<std::size_t>(&op - ops.data()) + 1;
         at < ops.size(); ++at)
      if (ops[at].communicates() && ops[at].group == op.group)
        return ops[at].kind == OpKind::kCollective && ops[at].root < 0 &&
               !program_.sites[ops[at].site].agrees_with(
                   program_.sites[op.site]);
    return false;
  });
  if (!spot)
    return false;
  Op& changed = op(*spot);
  involve(changed.group);
  CallSite site = program_.sites[changed.site];
  const auto use = [&](const CallSite& made) {
    program_.sites.push_back(made);
    op(*spot).site = static_cast<SiteId>(program_.sites.size() - 1);
  };
  switch (trouble_) {
    case kType:
    case kTypeUnlaunched:
      if (site.name == "all_reduce") {
        site.name = "all_gather";
        site.outputs[0].shape[0] *= members(changed.group);
      } else {
        site.name = "all_reduce";
        site.outputs = site.inputs;
      }
      use(site);
      op(*spot).host_blocks = trouble_ == kTypeUnlaunched;
      accuse("type_mismatch", {spot->rank});
      return true;
    case kSize:
    case kSizeUnnoticed:
      site.inputs[0].shape[0] *= 2;
      site.outputs[0].shape[0] *= 2;
      use(site);
      accuse("size_mismatch", {spot->rank});
      plan_.differing = random_.chance(50) ? Differing::kAllStick
                                           : Differing::kMinoritySticks;
      if (trouble_ == kSizeUnnoticed) {
        std::vector<Op>& ops = program_.of(spot->rank);
        const int group = op(*spot).group;
        for (std::size_t at = spot->index + 1; at < ops.size(); ++at)
          if (ops[at].kind == OpKind::kCollective && ops[at].group == group) {
            ops[at].never_ends = true;
            plan_.differing = Differing::kNobodyNotices;
            return true;
          }
        return false;
      }
      return true;
    case kDtype:
      site.inputs[0].dtype = site.outputs[0].dtype = "Half";
      use(site);
      plan_.differing = random_.chance(50) ? Differing::kAllStick
                                           : Differing::kMinoritySticks;
      accuse("dtype_mismatch", {spot->rank});
      return true;
    default: {
      std::vector<Op>& ops = program_.of(spot->rank);
      const auto at = ops.begin() + static_cast<std::ptrdiff_t>(spot->index);
      if (trouble_ == kSkips)
        ops.erase(at);
      else
        ops.insert(at, Op(*at));
      accuse("type_mismatch", {spot->rank},
             {"size_mismatch", "dtype_mismatch", "never_joined",
              "order_mismatch"});
      return true;
    }
  }
}

bool Maker::swap() {
  std::size_t other = 0;
  const auto spot = find([&](int rank, const Op& op) {
    if (!needs_all(op) || op.side)
      return false;
    const std::vector<Op>& ops = program_.of(rank);
    for (auto at = static_cast<std::size_t>(&op - ops.data()) + 1;
         at < ops.size(); ++at) {
      if (!ops[at].communicates())
        continue;
      other = at;
      return needs_all(ops[at]) && ops[at].group != op.group && !ops[at].side &&
             (members(ops[at].group) == program_.world() ||
              members(op.group) == program_.world()) &&
             members(op.group) > 2 && members(ops[at].group) > 2;
    }
    return false;
  });
  if (!spot)
    return false;
  involve(op(*spot).group);
  std::vector<Op>& ops = program_.of(spot->rank);
  involve(ops[other].group);
  std::swap(ops[spot->index], ops[other]);
  accuse("order_mismatch", {spot->rank});
  return true;
}

bool Maker::misplace() {
  int other = -1;
  const auto spot = find([&](int rank, const Op& op) {
    if (!needs_all(op) || op.side || members(op.group) < 3)
      return false;
    for (std::size_t g = 0; g < program_.groups.size(); ++g)
      if (static_cast<int>(g) != op.group &&
          program_.groups[g].members.size() > 2 &&
          std::ranges::binary_search(program_.groups[g].members, rank)) {
        other = static_cast<int>(g);
        return true;
      }
    return false;
  });
  if (!spot)
    return false;
  involve(op(*spot).group);
  involve(other);
  op(*spot).group = other;
  accuse("order_mismatch", {spot->rank},
         {"never_joined", "type_mismatch", "size_mismatch", "dtype_mismatch"});
  return true;
}

bool Maker::drop(bool send) {
  const auto spot = find([&](int, const Op& op) {
    return op.kind == OpKind::kTransfers &&
           std::ranges::any_of(op.pieces, [&](const Piece& piece) {
             return piece.send == send;
           });
  });
  if (!spot)
    return false;
  Op& changed = op(*spot);
  const auto piece = std::ranges::find(changed.pieces, send, &Piece::send);
  const int peer = piece->peer;
  changed.pieces.erase(piece);
  if (changed.pieces.empty())
    program_.of(spot->rank)
        .erase(program_.of(spot->rank).begin() +
               static_cast<std::ptrdiff_t>(spot->index));
  accuse("p2p_unmatched", {spot->rank}, {"never_joined"});
  plan_.truth.also = {
      {"p2p_unmatched",
       {std::min(spot->rank, peer), std::max(spot->rank, peer)}}};
  plan_.involved = {spot->rank, peer};
  return true;
}

// Its data has run out: it goes to the last barrier at once.
bool Maker::leave() {
  const int rank = static_cast<int>(random_.below(program_.ranks.size()));
  std::vector<Op>& ops = program_.of(rank);
  const std::vector<std::size_t>& steps =
      program_.steps[static_cast<std::size_t>(rank)];
  const std::size_t from = steps[steps.size() - 2];
  const std::size_t to = steps.back();
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(from),
            ops.begin() + static_cast<std::ptrdiff_t>(to));
  accuse("type_mismatch", {rank},
         {"size_mismatch", "order_mismatch", "never_joined", "p2p_unmatched"});
  for (const Group& group : program_.groups)
    if (std::ranges::binary_search(group.members, rank))
      involve(static_cast<int>(&group - program_.groups.data()));
  return program_.world() > 2;
}

}  // namespace

std::optional<Plan> make_trouble(Trouble trouble, bool timing, Program& program,
                                 Random& random) {
  return Maker(trouble, timing, program, random).make();
}

}  // namespace postflight::synthetic::cluster
