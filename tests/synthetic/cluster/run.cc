// A discrete-event simulation with one clock. A host goes through its program
// and enqueues tasks; a task starts when the tasks before it in its stream and
// those that its stream waits for are done. A collective has a stream for each
// group, a batch of transfers that of its group, a plain transfer one for each
// pair of ranks. A call that is not asynchronous makes the compute stream wait.
#include "synthetic/cluster/run.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace postflight::synthetic::cluster {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct Task {
  int rank = 0;
  std::uint32_t op = 0;
  std::uint32_t kept = kNone;
  std::uint32_t waits_for = 0;
  std::vector<std::uint32_t> next = {};
  std::int64_t ready = kNever;
  std::int64_t done = kNever;
  int open_pieces = 0;
  std::int64_t latest = 0;
};

struct Host {
  std::size_t next = 0;
  std::int64_t time = 0;
  bool waits = false;
  bool stopped = false;
  bool failed = false;  // its device no longer answers
  std::int64_t failed_at = kNever;
  std::uint32_t open = 0;           // tasks that are not done
  std::vector<std::uint32_t> tail;  // of the compute stream
  std::vector<std::uint32_t> beside;
  std::map<std::pair<int, int>, std::uint32_t> streams;
  std::map<int, std::int32_t> sequence;
  std::map<int, std::int32_t> p2p_sequence;
  std::map<int, std::int32_t> operation_id;
};

struct Meeting {
  std::vector<std::uint32_t> tasks;
  bool stuck = false;
};

class Player {
 public:
  Player(const Program& program, const RunOptions& options)
      : program_(program),
        options_(options),
        random_(options.seed),
        hosts_(program.ranks.size()),
        meetings_(program.groups.size()) {
    ran_.kept.resize(hosts_.size());
    ran_.struck.assign(hosts_.size(), kNever);
  }

  Ran play() && {
    for (int rank = 0; rank < program_.world(); ++rank) {
      host(rank).time = random_.between(0, 3'000'000);
      push(host(rank).time, rank, kNone);
    }
    while (!events_.empty()) {
      const auto [time, order, rank, task] = events_.top();
      events_.pop();
      if (time > options_.until) {
        ran_.cut = true;
        break;
      }
      ran_.end = std::max(ran_.end, time);
      now_ = time;
      if (task == kNone)
        step(rank);
      else
        finish(task);
    }
    for (int rank = 0; rank < program_.world(); ++rank)
      ran_.hung |= host(rank).next < program_.of(rank).size() ||
                   host(rank).open > 0 || host(rank).stopped;
    for (const Host& one : hosts_)
      ran_.open.push_back(one.open);
    return std::move(ran_);
  }

 private:
  using Event = std::tuple<std::int64_t, std::uint64_t, int, std::uint32_t>;

  Host& host(int rank) { return hosts_[static_cast<std::size_t>(rank)]; }
  std::vector<Kept>& kept(int rank) {
    return ran_.kept[static_cast<std::size_t>(rank)];
  }
  const Op& op_of(const Task& task) const {
    return program_.of(task.rank)[task.op];
  }
  void push(std::int64_t time, int rank, std::uint32_t task) {
    events_.emplace(time, ++order_, rank, task);
  }
  void strike(int rank) {
    std::int64_t& struck = ran_.struck[static_cast<std::size_t>(rank)];
    if (struck == kNever)
      struck = now_;
  }

  void step(int rank) {
    Host& at = host(rank);
    const std::vector<Op>& ops = program_.of(rank);
    if (at.stopped || at.next == ops.size())
      return;
    const Op& op = ops[at.next];
    if (op.host_stops) {
      strike(rank);
      at.stopped = true;
      return;
    }
    if (op.kind == OpKind::kSync || (options_.blocking && op.communicates())) {
      if (at.open > 0) {
        at.waits = true;
        return;
      }
    }
    std::int64_t cost = random_.between(8'000, 30'000);
    if (op.kind == OpKind::kHostWork)
      cost = op.ns + random_.between(0, op.ns / 4);
    if (op.kind == OpKind::kHostWork || op.kind == OpKind::kSync)
      cost += rank == options_.late_rank ? options_.late_ns : 0;
    const auto index = static_cast<std::uint32_t>(at.next++);
    if (op.kind == OpKind::kJoin) {
      at.tail.insert(at.tail.end(), at.beside.begin(), at.beside.end());
      at.beside.clear();
    } else if (op.kind == OpKind::kCompute) {
      if (options_.blocking)
        cost += op.ns;
      else
        add_task(rank, index, kNone, {-1, -1}, false);
    } else if (op.communicates()) {
      communicate(rank, index, op);
    }
    if (!at.stopped)
      push(now_ + cost, rank, kNone);
  }

  void communicate(int rank, std::uint32_t index, const Op& op) {
    Host& at = host(rank);
    const bool transfers = op.kind == OpKind::kTransfers;
    const auto keep = [&](EntryKind kind, const Piece* piece) {
      Kept one{.kind = kind,
               .group = op.group,
               .sequence = at.sequence[op.group],
               .p2p_sequence = at.p2p_sequence[op.group],
               .operation_id = at.operation_id[op.group],
               .site = op.site,
               .root = op.root,
               .of_transfers = transfers,
               .created = now_};
      if (piece != nullptr) {
        one.site = transfers ? piece->site : op.site;
        one.peer = piece->peer;
        one.send = piece->send;
      }
      kept(rank).push_back(one);
    };
    const std::size_t first = kept(rank).size();
    if (transfers) {
      ++at.p2p_sequence[op.group];
      for (const Piece& piece : op.pieces) {
        ++at.operation_id[op.group];
        keep(op.batched ? EntryKind::kMember : EntryKind::kTransfer, &piece);
      }
    } else {
      ++at.sequence[op.group];
      ++at.operation_id[op.group];
      for (std::size_t i = 0;
           op.kind == OpKind::kCoalesced && i < op.pieces.size(); ++i)
        keep(EntryKind::kMember, nullptr);
    }
    if (op.batched || op.kind == OpKind::kCoalesced)
      keep(EntryKind::kClosing, nullptr);
    else if (!transfers)
      keep(EntryKind::kCollective, nullptr);
    const auto judge = static_cast<std::int32_t>(kept(rank).size() - 1);
    for (std::size_t i = first; i < kept(rank).size(); ++i)
      kept(rank)[i].judge = judge;
    if (op.host_blocks) {
      strike(rank);
      for (std::size_t i = first; i < kept(rank).size(); ++i)
        kept(rank)[i].unlaunched = true;
      at.stopped = true;
      return;
    }
    const int lane = transfers && !op.batched ? op.pieces[0].peer : -1;
    add_task(rank, index, static_cast<std::uint32_t>(judge), {op.group, lane},
             op.side);
  }

  void add_task(int rank, std::uint32_t index, std::uint32_t record,
                std::pair<int, int> stream, bool side) {
    Host& at = host(rank);
    const auto id = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back({.rank = rank, .op = index, .kept = record});
    ++at.open;
    const auto wait_for = [&](std::uint32_t other) {
      if (tasks_[other].done != kNever && !host(rank).failed)
        return;
      tasks_[other].next.push_back(id);
      ++tasks_[id].waits_for;
    };
    for (const std::uint32_t other : at.tail)
      wait_for(other);
    if (record != kNone) {
      const auto [found, is_new] = at.streams.try_emplace(stream, id);
      if (!is_new) {
        wait_for(found->second);
        found->second = id;
      }
    }
    if (side)
      at.beside.push_back(id);
    else
      at.tail.assign(1, id);
    const Op& op = op_of(tasks_[id]);
    if (op.device_stops)
      ++tasks_[id].waits_for;  // for a kernel that does not end
    if (op.device_stops && tasks_[id].waits_for == 1)
      strike(rank);
    if (tasks_[id].waits_for == 0)
      start(id);
  }

  void start(std::uint32_t id) {
    Task& task = tasks_[id];
    if (host(task.rank).failed)
      return;
    task.ready = task.latest = now_;
    if (task.kept == kNone) {
      push(now_ + op_of(task).ns + random_.between(0, 20'000), task.rank, id);
      return;
    }
    for (std::uint32_t i = task.kept + 1; i-- > 0;) {
      Kept& one = kept(task.rank)[i];
      if (one.judge != static_cast<std::int32_t>(task.kept))
        break;
      one.ready = now_;
    }
    if (op_of(task).kind == OpKind::kTransfers)
      post(id);
    else
      arrive(id);
  }

  std::int64_t cost(int group) {
    return options_.transfer_ns + random_.between(0, options_.transfer_ns) +
           (group == options_.slow_group ? options_.slow_ns : 0);
  }

  void arrive(std::uint32_t id) {
    const Task& task = tasks_[id];
    const Op& op = op_of(task);
    const auto place =
        static_cast<std::size_t>(kept(task.rank)[task.kept].sequence - 1);
    auto& meetings = meetings_[static_cast<std::size_t>(op.group)];
    if (meetings.size() <= place)
      meetings.resize(place + 1);
    Meeting& meeting = meetings[place];
    meeting.tasks.push_back(id);
    meeting.stuck |= op.never_ends;
    const Group& group = program_.groups[static_cast<std::size_t>(op.group)];
    if (options_.eager && ends_early(op, task.rank) && !meeting.stuck)
      push(now_ + cost(op.group), task.rank, id);
    if (meeting.tasks.size() == group.members.size() && !meeting.stuck)
      end_meeting(op.group, meeting);
  }

  // The root of what it gives away, all others of what the root collects.
  bool ends_early(const Op& op, int rank) const {
    if (op.root < 0)
      return false;
    const std::string_view name = program_.sites[op.site].name;
    const bool gives = name == "broadcast" || name == "scatter";
    const bool root =
        program_.groups[static_cast<std::size_t>(op.group)].position(rank) ==
        op.root;
    return gives == root;
  }

  void end_meeting(int group, const Meeting& meeting) {
    std::map<std::tuple<std::string_view, std::vector<std::int64_t>>, int>
        votes;
    const auto key = [&](std::uint32_t id) {
      const Op& op = op_of(tasks_[id]);
      const CallSite& site = program_.sites[op.site];
      std::vector<std::int64_t> shape;
      if (op.root < 0 || site.name == "broadcast" || site.name == "reduce") {
        shape = site.inputs[0].shape;
        shape.push_back(static_cast<std::int64_t>(site.inputs[0].dtype.size()));
      }
      return std::tuple(site.name, shape);
    };
    for (const std::uint32_t id : meeting.tasks)
      ++votes[key(id)];
    if (votes.size() > 1 && options_.differing == Differing::kAllStick)
      return;
    const auto most = std::ranges::max_element(
        votes, {}, [](const auto& vote) { return vote.second; });
    const std::int64_t end = now_ + cost(group);
    for (const std::uint32_t id : meeting.tasks) {
      Task& task = tasks_[id];
      if (options_.eager && ends_early(op_of(task), task.rank))
        continue;
      if (votes.size() > 1 &&
          options_.differing == Differing::kMinoritySticks &&
          key(id) != most->first)
        continue;
      if (op_of(task).device_fails) {
        host(task.rank).failed = true;
        strike(task.rank);
        continue;
      }
      push(end + random_.between(0, 10'000), task.rank, id);
    }
  }

  void post(std::uint32_t id) {
    const Op& op = op_of(tasks_[id]);
    const int rank = tasks_[id].rank;
    tasks_[id].open_pieces = static_cast<int>(op.pieces.size());
    if (op.never_ends)
      return;
    for (const Piece& piece : op.pieces) {
      const int from = piece.send ? rank : piece.peer;
      const int to = piece.send ? piece.peer : rank;
      auto& own = posted_[{op.group, from, to, piece.send}];
      const std::size_t place = own.size();
      own.push_back(id);
      const auto& theirs = posted_[{op.group, from, to, !piece.send}];
      const bool alone = piece.send && options_.eager;
      if (alone)
        close_piece(id, now_);
      if (place >= theirs.size())
        continue;
      const std::uint32_t other = theirs[place];
      if (!alone)
        close_piece(id, std::max(now_, tasks_[other].ready));
      if (piece.send || !options_.eager)
        close_piece(other, now_);
    }
  }

  void close_piece(std::uint32_t id, std::int64_t when) {
    Task& task = tasks_[id];
    task.latest = std::max(task.latest, when);
    if (--task.open_pieces == 0)
      push(std::max(task.latest, now_) + cost(op_of(task).group), task.rank,
           id);
  }

  void finish(std::uint32_t id) {
    Task& task = tasks_[id];
    Host& at = host(task.rank);
    if (at.failed || task.done != kNever)
      return;
    task.done = now_;
    if (task.kept != kNone)
      for (std::uint32_t i = task.kept + 1; i-- > 0;) {
        Kept& one = kept(task.rank)[i];
        if (one.judge != static_cast<std::int32_t>(task.kept))
          break;
        one.completed = now_;
      }
    --at.open;
    const std::vector<std::uint32_t> next = std::move(task.next);
    for (const std::uint32_t other : next) {
      const std::uint32_t left = --tasks_[other].waits_for;
      if (left == 1 && op_of(tasks_[other]).device_stops)
        strike(tasks_[other].rank);
      if (left == 0)
        start(other);
    }
    if (at.waits && at.open == 0) {
      at.waits = false;
      push(now_ + random_.between(10'000, 60'000), tasks_[id].rank, kNone);
    }
  }

  const Program& program_;
  const RunOptions options_;
  Random random_;
  std::vector<Host> hosts_;
  std::vector<Task> tasks_;
  std::vector<std::vector<Meeting>> meetings_;
  std::map<std::tuple<int, int, int, bool>, std::vector<std::uint32_t>> posted_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;
  Ran ran_;
};

}  // namespace

Ran run_program(const Program& program, const RunOptions& options) {
  return Player(program, options).play();
}

}  // namespace postflight::synthetic::cluster
