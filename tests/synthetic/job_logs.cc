#include "synthetic/job_logs.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace postflight::synthetic {
namespace {

using cluster::EntryKind;
using cluster::Kept;
using cluster::kNever;
using cluster::Trouble;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;
constexpr std::int64_t kForever = INT64_MAX / 2;
constexpr int kKernel = -2;  // a line of dmesg
constexpr int kNode = -100;  // of the launcher on node N: kNode - N

// Jobs begin at six in the morning.
struct Clock {
  int day, hour, minute, second;
  std::int64_t fraction;

  explicit Clock(std::int64_t time) {
    time += 6 * 3600 * kSecond;
    day = static_cast<int>(15 + time / kSecond / 86'400);
    hour = static_cast<int>(time / kSecond / 3600 % 24);
    minute = static_cast<int>(time / kSecond / 60 % 60);
    second = static_cast<int>(time / kSecond % 60);
    fraction = time % kSecond;
  }
};

// "E1115 06:51:50.123456789"
std::string glog(std::int64_t time, char level) {
  const Clock at(time);
  return fmt::format("{}11{:02} {:02}:{:02}:{:02}.{:09}", level, at.day,
                     at.hour, at.minute, at.second, at.fraction);
}

// "2026-11-15 06:51:50,123"
std::string written(std::int64_t time, char between = ' ', char point = ',') {
  const Clock at(time);
  return fmt::format("2026-11-{:02}{}{:02}:{:02}:{:02}{}{:03}", at.day, between,
                     at.hour, at.minute, at.second, point,
                     at.fraction / kMillisecond);
}

std::int64_t number_of(const Kept& one) {
  return one.of_transfers ? one.p2p_sequence : one.sequence;
}

std::int64_t elements(const std::vector<Tensor>& tensors) {
  std::int64_t all = 0;
  for (const Tensor& tensor : tensors) {
    std::int64_t one = 1;
    for (const std::int64_t size : tensor.shape)
      one *= size;
    all += one;
  }
  return all;
}

std::string type_of(const Kept& one, const CallSite& site) {
  if (one.kind == EntryKind::kClosing)
    return "COALESCED";
  if (one.of_transfers)
    return one.send ? "SEND" : "RECV";
  if (site.name == "_all_gather_base")
    return "_ALLGATHER_BASE";
  if (site.name == "_reduce_scatter_base")
    return "_REDUCE_SCATTER_BASE";
  if (site.name == "all_to_all")
    return "ALLTOALL_BASE";
  if (site.name == "all_reduce_barrier")
    return "ALLREDUCE";
  std::string type(site.name);
  std::erase(type, '_');
  for (char& c : type)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return type;
}

struct Line {
  std::int64_t time = 0;
  int rank = 0;
  std::string text;
  bool by_torch = true;  // with "[rank3]:" where torch writes it
};

// A wait that a rank gave up, or would have if it had lived.
struct Expiry {
  std::int64_t time = 0;
  int rank = 0;
  int group = 0;
  const Kept* work = nullptr;
};

class Writer {
 public:
  Writer(const cluster::Snapshot& job, const LogOptions& options)
      : job_(job),
        options_(options),
        random_(options.seed),
        ends_(static_cast<std::size_t>(job.world), kForever),
        gave_up_(static_cast<std::size_t>(job.world), kNever) {}

  JobLogs write() && {
    decide_truth();
    if (options_.attempt)
      fail_before();
    for (int rank = 0; rank < job_.world; ++rank)
      start(rank);
    if (!job_.moving) {
      for (const int rank : dead_)
        die(rank);
      give_up();
      end_launchers();
    }
    made_.tells = made_.tells || outlived();
    // It notices the first.
    if (options_.launcher == Launcher::kMpirun &&
        job_.trouble == Trouble::kNodeKilled)
      made_.tells = false;
    std::ranges::stable_sort(lines_, {}, &Line::time);
    lay_down();
    return std::move(made_);
  }

 private:
  bool culprit(int rank) const {
    return std::ranges::count(made_.truth.culprits, rank) > 0;
  }
  std::int64_t& end_of(int rank) {
    return ends_[static_cast<std::size_t>(rank)];
  }
  const cluster::Group& group(int index) const {
    return job_.program.groups[static_cast<std::size_t>(index)];
  }
  const std::vector<Kept>& kept(int rank) const {
    return job_.ran.kept[static_cast<std::size_t>(rank)];
  }
  int node_of(int rank) const { return rank / options_.ranks_per_node; }
  std::int64_t pid(int rank) const { return 40'000 + 17 * rank; }

  void say(std::int64_t time, int rank, std::string text,
           bool by_torch = true) {
    if (rank >= 0 && time > end_of(rank))
      return;
    lines_.push_back({time, rank, std::move(text), by_torch});
  }

  // What is right to say without dumps. Nobody sees where a device stands.
  void decide_truth() {
    Truth& truth = made_.truth;
    truth = job_.truth;
    truth.no_dump.clear();
    const Trouble trouble = job_.trouble;
    if (job_.moving) {
      truth = {};
      truth.kind = "inconclusive";
      return;
    }
    if (trouble == Trouble::kRaises || trouble == Trouble::kRaisesNoDump ||
        trouble == Trouble::kKilled || trouble == Trouble::kNodeKilled) {
      truth.kind = "no_dump";
      truth.accept = {"never_joined"};
      for (const int rank : truth.culprits)
        if (struck(rank) != kNever)
          dead_.push_back(rank);
    }
    // What was never launched is in no log.
    if (trouble == Trouble::kTypeUnlaunched)
      truth.accept.push_back("never_joined");
    const bool device = truth.kind == "device_stalled";
    if (device && options_.reasons) {
      truth.accept = {"no_dump"};
      for (const int rank : truth.culprits)
        if (struck(rank) != kNever)
          dead_.push_back(rank);
      device_ = true;
    } else if (device) {
      truth.also.push_back({"all_joined_stuck", {}});
      truth.also.push_back({"inconclusive", {}});
    }
    made_.tells = !dead_.empty() && options_.reasons &&
                  dead_.size() == truth.culprits.size();
  }

  std::int64_t struck(int rank) const {
    return job_.ran.struck[static_cast<std::size_t>(rank)];
  }

  void fail_before() {
    // Hours before, and somebody else's fault.
    const std::int64_t shift = -4 * 3600 * kSecond;
    const int other =
        (made_.truth.culprits.empty() ? 0 : made_.truth.culprits[0] + 1) %
        job_.world;
    say(shift, other, "Traceback (most recent call last):");
    say(shift, other, "  File \"/job/train.py\", line 19, in <module>");
    say(shift, other, "    model = build(config)");
    say(shift, other, "KeyError: 'hidden_size'");
    for (int rank = 0; rank < job_.world; ++rank)
      say(shift - kSecond, rank,
          written(shift - kSecond) + " INFO starting, attempt 0", false);
  }

  void start(int rank) {
    say(rank * 1000, rank,
        fmt::format("{} INFO loading shard {} of the data",
                    written(rank * 1000), rank),
        false);
    if (rank == 0)
      say(0, rank, fmt::format("world_size={}", job_.world), false);
    if (options_.noise && rank % 3 == 0) {
      say(2000, rank,
          "/opt/lib/python3/site-packages/torch/nn/modules/module.py:1830: "
          "FutureWarning: Using a non-full backward hook",
          false);
      say(3000, rank,
          fmt::format("node{}:{}:{} [{}] NCCL INFO Channel 00/04 : 0 1 2 3",
                      node_of(rank), pid(rank), pid(rank) + 9,
                      rank % options_.ranks_per_node),
          false);
      say(4000, rank,
          fmt::format("{} WARNING read of shard {} failed, trying again: "
                      "TimeoutError",
                      written(4000), rank),
          false);
    }
    if (options_.tells_size && options_.style == LogStyle::kNamedGroups)
      for (std::size_t g = 0; g < job_.program.groups.size(); ++g)
        if (std::ranges::binary_search(group(static_cast<int>(g)).members,
                                       rank))
          say(rank * 1000 + 10, rank,
              fmt::format("[{} ProcessGroupNCCL.cpp:905] {}ProcessGroupNCCL "
                          "initialization options: size: {}, global rank: {}, "
                          "TIMEOUT(ms): {}, USE_HIGH_PRIORITY_STREAM: 0",
                          glog(rank * 1000 + 10, 'I'),
                          prefix(rank, static_cast<int>(g)),
                          group(static_cast<int>(g)).members.size(), rank,
                          job_.timeout_ms));
    const std::int64_t last = job_.ran.end / 2;
    say(last, rank, written(last) + " INFO step 1 loss 2.31", false);
  }

  std::string prefix(int rank, int g) const {
    const int place = group(g).position(rank);
    switch (options_.style) {
      case LogStyle::kNamedGroups: {
        int local = 0;
        for (int other = 0; other < g; ++other)
          local +=
              std::ranges::binary_search(group(other).members, rank) ? 1 : 0;
        return fmt::format("[PG ID {} PG GUID {}({}) Rank {}] ", local,
                           group(g).name, group(g).description, place);
      }
      case LogStyle::kNumbered:
        return fmt::format("[PG {} Rank {}] ", group(g).name, place);
      default:
        return fmt::format("[Rank {}] ", place);
    }
  }

  struct Status {
    std::int64_t enqueued = -1;
    std::int64_t completed = -1;
    const Kept* pending = nullptr;
  };
  Status status_of(int rank, int g) const {
    Status status;
    for (const Kept& one : kept(rank)) {
      if (one.group != g || one.unlaunched || one.kind == EntryKind::kMember)
        continue;
      status.enqueued = number_of(one);
      if (one.completed == kNever) {
        if (status.pending == nullptr)
          status.pending = &one;
      } else if (status.pending == nullptr) {
        status.completed = number_of(one);
      }
    }
    return status;
  }

  std::string work_text(const Kept& one, std::int64_t ran) const {
    const CallSite& site = job_.program.sites[one.site];
    const bool sizes = options_.style != LogStyle::kPlain || options_.seed % 2;
    return fmt::format(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
        "OpType={}, {}Timeout(ms)={}) ran for {} milliseconds before timing "
        "out.",
        number_of(one), type_of(one, site),
        sizes ? fmt::format("NumelIn={}, NumelOut={}, ", elements(site.inputs),
                            elements(site.outputs))
              : "",
        job_.timeout_ms, ran);
  }

  // The launcher ends the others of a node when one of them has ended, and
  // perhaps the other nodes.
  void spread_end(int rank, std::int64_t time) {
    end_of(rank) = std::min(end_of(rank), time);
    if (options_.launcher == Launcher::kKubernetes)
      return;
    for (int other = 0; other < job_.world; ++other) {
      if (node_of(other) == node_of(rank))
        end_of(other) =
            std::min(end_of(other), time + options_.monitor_ms * kMillisecond);
      else if (options_.spread_ms >= 0)
        end_of(other) = std::min(
            end_of(other),
            time + (options_.monitor_ms + options_.spread_ms) * kMillisecond);
    }
  }

  void die(int rank) {
    const std::int64_t time = struck(rank) + 5 * kMillisecond;
    if (time > end_of(rank))
      return;
    causes_.emplace(rank, time);
    spread_end(rank, time + 40 * kMillisecond);
    if (!options_.reasons)
      return;
    const std::size_t what = (options_.seed + 7) % 8;
    if (device_) {
      lines_.push_back(
          {time, kKernel,
           fmt::format("[Sun Nov 15 {:02}:{:02}:{:02} 2026] NVRM: Xid "
                       "(PCI:0000:3b:00): 79, pid={}, GPU has fallen off the "
                       "bus.",
                       Clock(time).hour, Clock(time).minute, Clock(time).second,
                       pid(rank))});
      say(time + 10, rank,
          fmt::format("[{} ProcessGroupNCCL.cpp:2068] {}Process group watchdog "
                      "thread terminated with exception: CUDA error: "
                      "unspecified launch failure",
                      glog(time + 10, 'E'), prefix(rank, 0)));
      codes_[rank] = -6;
      return;
    }
    if (job_.trouble == Trouble::kKilled ||
        job_.trouble == Trouble::kNodeKilled) {
      codes_[rank] = -9;
      if (options_.launcher == Launcher::kKubernetes)
        lines_.push_back(
            {time, rank,
             fmt::format("{} rank {}: {}", written(time), rank,
                         "Fatal Python error: Segmentation fault")});
      else if (what % 2 == 0)
        lines_.push_back(
            {time, kKernel,
             fmt::format("[Sun Nov 15 {:02}:{:02}:{:02} 2026] Out of memory: "
                         "Killed process {} (python) total-vm:912345678kB",
                         Clock(time).hour, Clock(time).minute,
                         Clock(time).second, pid(rank))});
      return;
    }
    codes_[rank] = 1;
    constexpr std::string_view kReasons[] = {
        "OSError: [Errno 5] Input/output error: '/data/shard-17.tar'",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
        "GiB. GPU 3 has a total capacity of 79.10 GiB of which 1.2 GiB is "
        "free.",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "AssertionError",
        "KeyError: 'labels'",
        "data.BadShard: shard 17: checksum of record 4 does not match",
        "ValueError: loss is nan at step 41",
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: "
        "Killed."};
    say(time, rank, "Traceback (most recent call last):");
    say(time + 1, rank, "  File \"/job/train.py\", line 88, in <module>");
    say(time + 2, rank, "    batch = next(loader)");
    say(time + 3, rank,
        "  File \"/opt/lib/python3/site-packages/torch/utils/data/"
        "dataloader.py\", line 701, in __next__");
    say(time + 4, rank, "    data = self._next_data()");
    say(time + 5, rank, std::string(kReasons[what]));
  }

  std::vector<Expiry> expiries() const {
    std::vector<Expiry> all;
    for (int rank = 0; rank < job_.world; ++rank)
      for (std::size_t g = 0; g < job_.program.groups.size(); ++g) {
        const Status status = status_of(rank, static_cast<int>(g));
        if (status.pending == nullptr || dies(rank))
          continue;
        const std::int64_t poll = (rank * 37 + static_cast<int>(g) * 11) % 100;
        all.push_back({status.pending->created +
                           (job_.timeout_ms + poll) * kMillisecond +
                           rank * 7'919LL,
                       rank, static_cast<int>(g), status.pending});
      }
    std::ranges::stable_sort(all, {}, &Expiry::time);
    return all;
  }
  bool dies(int rank) const { return std::ranges::count(dead_, rank) > 0; }

  void give_up() {
    const std::vector<Expiry> all = expiries();
    if (options_.style == LogStyle::kDetail)
      return check_beforehand(all);
    if (options_.style == LogStyle::kGloo)
      return close_connections(all);
    std::optional<std::int64_t> first;
    int first_rank = 0;
    for (const Expiry& one : all) {
      if (one.time > end_of(one.rank))
        continue;
      if (!first) {
        first = one.time;
        first_rank = one.rank;
        if (options_.desync)
          report_desync(one);
      }
      expire(one);
    }
    if (!first)
      return;
    compare(all);
    if (options_.style != LogStyle::kPlain)
      for (int rank = 0; rank < job_.world; ++rank)
        if (!dies(rank))
          tell_monitor(rank, first_rank,
                       *first + (100 + rank * 613 % 1000) * kMillisecond);
    chat(*first);
  }

  // Threads that do something else are not stopped by a hang.
  void chat(std::int64_t first) {
    if (!options_.chatter)
      return;
    for (int rank = 0; rank < job_.world; ++rank)
      for (int i = -2; i < 5; ++i) {
        const std::int64_t time = first + (i * 20 + rank % 20) * kSecond;
        say(time, rank, written(time) + " INFO gpu temperature 61", false);
      }
  }

  void expire(const Expiry& one) {
    const Status status = status_of(one.rank, one.group);
    const int place = group(one.group).position(one.rank);
    const std::int64_t time = one.time;
    std::int64_t& gave_up = gave_up_[static_cast<std::size_t>(one.rank)];
    gave_up = gave_up == kNever ? time : gave_up;
    said_.push_back(one);
    const std::string work =
        work_text(*one.work, (time - one.work->created) / kMillisecond);
    const bool old = options_.style == LogStyle::kPlain;
    say(time, one.rank,
        fmt::format("[{}ProcessGroupNCCL.cpp:683] [Rank {}] {}",
                    old ? "E " : glog(time, 'E') + " ", place, work));
    const std::int64_t number = number_of(*one.work);
    if (options_.style == LogStyle::kNamedGroups)
      say(time + 1000, one.rank,
          fmt::format("[{} ProcessGroupNCCL.cpp:2241] {} failure detected by "
                      "watchdog at work sequence id: {} PG status: last "
                      "enqueued work: {}, {}last completed work: {}",
                      glog(time + 1000, 'E'), prefix(one.rank, one.group),
                      number, status.enqueued,
                      options_.seed % 3 == 0 ? "last started work: -1, " : "",
                      status.completed));
    if (options_.style == LogStyle::kNumbered)
      say(time + 1000, one.rank,
          fmt::format("[{} ProcessGroupNCCL.cpp:1537] {}{} NCCL work: {}, last "
                      "enqueued NCCL work: {}, last completed NCCL work: {}.",
                      glog(time + 1000, 'E'), prefix(one.rank, one.group),
                      "Timeout at", number, status.enqueued,
                      status.completed < 0 ? 76'280'750'235'782'912
                                           : status.completed));
    const std::int64_t end = time + options_.dump_wait_ms * kMillisecond;
    say(end, one.rank,
        fmt::format("[{}ProcessGroupNCCL.cpp:728] [Rank {}] To avoid data "
                    "inconsistency, we are taking the entire process down.",
                    old ? "E " : glog(end, 'E') + " ", place));
    say(end + 1000, one.rank,
        "terminate called after throwing an instance of "
        "'c10::DistBackendError'");
    say(end + 2000, one.rank,
        fmt::format(
            "  what():  {}Process group watchdog thread terminated with "
            "exception: [Rank {}] {}",
            prefix(one.rank, one.group), place, work));
    codes_.try_emplace(one.rank, -6);
    causes_.try_emplace(one.rank, end);
    spread_end(one.rank, end + 3 * kMillisecond);
  }

  // Whether the text shows that a rank at fault called something else.
  void compare(const std::vector<Expiry>&) {
    if (made_.truth.kind.find("mismatch") == std::string::npos)
      return;
    std::map<std::pair<int, std::int64_t>, std::map<std::string, std::set<int>>>
        calls;
    for (const Expiry& one : said_) {
      if (one.work->of_transfers)
        continue;
      std::string text = work_text(*one.work, 0);
      const CallSite& site = job_.program.sites[one.work->site];
      // Rooted operations have other sizes by rule.
      if (site.name == "gather" || site.name == "scatter")
        text = type_of(*one.work, site);
      calls[{one.group, number_of(*one.work)}][text].insert(one.rank);
    }
    const bool named = options_.style != LogStyle::kPlain;
    for (const auto& [place, votes] : calls)
      if (votes.size() == 2 && (named || place.first == 0)) {
        const auto& [few, many] = std::minmax(
            votes.begin()->second, votes.rbegin()->second,
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
        made_.tells |=
            many.size() > few.size() + 0 &&
            std::vector<int>(few.begin(), few.end()) == made_.truth.culprits;
      }
  }

  void tell_monitor(int rank, int first, std::int64_t time) {
    const Status status = status_of(rank, 0);
    if (options_.style == LogStyle::kNumbered)
      return say(time, rank,
                 fmt::format(
                     "[{} ProcessGroupNCCL.cpp:1246] [PG 0 Rank {}] Received "
                     "a global timeout from another rank and will start to "
                     "dump the debug info. Last enqueued NCCL work: {}, last "
                     "completed NCCL work: {}.",
                     glog(time, 'E'), rank, status.enqueued, status.completed));
    say(time, rank,
        fmt::format(
            "[{} ProcessGroupNCCL.cpp:1858] {}Received a dump signal due to a "
            "collective timeout from {} and we will try our best to dump the "
            "debug info. Last enqueued NCCL work: {}, last completed NCCL "
            "work: {}.This is most likely caused by incorrect usages of "
            "collectives.",
            glog(time, 'E'), prefix(rank, 0),
            rank == first ? "this local rank" : fmt::format(" rank {}", first),
            status.enqueued, status.completed));
  }

  // What the store has of each rank in the group whose watchdog gave up.
  void report_desync(const Expiry& one) {
    const cluster::Group& of = group(one.group);
    std::int64_t least = INT64_MAX;
    std::vector<int> started;
    std::vector<int> finished;
    for (const int rank : of.members) {
      const Status status = status_of(rank, one.group);
      if (status.pending != nullptr && status.pending->of_transfers)
        return;
      // Of what waits, only that which is next was begun.
      const std::int64_t number = status.pending != nullptr
                                      ? number_of(*status.pending)
                                      : status.completed;
      if (number < least) {
        least = number;
        started.clear();
        finished.clear();
      }
      if (number == least)
        (status.pending != nullptr ? started : finished)
            .push_back(of.position(rank));
    }
    std::string text = fmt::format(
        "[{} ProcessGroupNCCL.cpp:1937] {}\n\t - [{}] Timeout at collective: "
        "{}, #{}\n\t - To our best knowledge, the lagging/dead/mismatched "
        "ranks that caused the desync are:",
        glog(one.time, 'E'), prefix(one.rank, one.group), of.position(one.rank),
        type_of(*one.work, job_.program.sites[one.work->site]),
        number_of(*one.work));
    if (!started.empty())
      text += fmt::format(
          "\n\t   - [{}] joined but didn't finish collective #{} (count from "
          "1)",
          fmt::join(started, ", "), least);
    if (!finished.empty())
      text += fmt::format(
          "\n\t     [{}] finished collective #{}, but didn't join collective "
          "#{} (count from 1)",
          fmt::join(finished, ", "), least, least + 1);
    text += "\n\t - Snapshot of ranks' latest states:";
    std::vector<int> all;
    for (const int rank : of.members)
      if (std::ranges::count(started, of.position(rank)) == 0 &&
          std::ranges::count(finished, of.position(rank)) == 0)
        all.push_back(of.position(rank));
    if (!all.empty())
      text +=
          fmt::format("\n\t   #{} started ranks:\n\t     [{}] started {}",
                      number_of(*one.work), fmt::join(all, ", "),
                      type_of(*one.work, job_.program.sites[one.work->site]));
    say(one.time - 1, one.rank, text);
    std::vector<int> ranks;
    for (const int place : finished)
      ranks.push_back(of.members[static_cast<std::size_t>(place)]);
    if (one.group == 0 && started.empty() && ranks == made_.truth.culprits &&
        made_.truth.kind == "never_joined")
      made_.tells = true;
  }

  // Each call is preceded by a barrier over TCP and a comparison.
  void check_beforehand(const std::vector<Expiry>& all) {
    // The oldest call of each group that is not over, of who has come.
    std::map<int, std::map<int, const Expiry*>> groups;
    for (const Expiry& one : all)
      if (!one.work->of_transfers)
        groups[one.group].try_emplace(one.rank, &one);
    std::vector<std::pair<std::int64_t, int>> order;
    for (const auto& [g, calls] : groups) {
      std::int64_t last = 0;
      for (const auto& [rank, one] : calls)
        last = std::max(last, one->work->created);
      order.emplace_back(last, g);
    }
    std::ranges::sort(order);
    std::set<int> raised;
    if (differ_first(raised))
      return;
    for (const auto& [time, g] : order) {
      const auto& calls = groups[g];
      std::vector<const Expiry*> here;
      for (const auto& [rank, one] : calls)
        if (!raised.contains(rank))
          here.push_back(one);
      const bool all_here = here.size() == group(g).members.size();
      if (here.empty())
        continue;
      if (all_here)
        mismatch(time + 20 * kMillisecond, g, here, raised);
      else
        miss(here[0]->work->created + job_.timeout_ms * kMillisecond, g, here,
             raised);
    }
  }

  // The first call in which members of a group differ, which would have been
  // compared before anybody made it.
  bool differ_first(std::set<int>& raised) {
    if (made_.truth.kind.find("mismatch") == std::string::npos)
      return false;
    std::optional<std::pair<std::int64_t, int>> first;
    std::vector<Expiry> calls;
    for (std::size_t g = 0; g < job_.program.groups.size(); ++g) {
      std::map<std::int64_t, std::vector<Expiry>> by_number;
      for (const int rank : group(static_cast<int>(g)).members)
        for (const Kept& one : kept(rank))
          if (one.group == static_cast<int>(g) && !one.of_transfers &&
              one.kind != EntryKind::kMember && one.root < 0)
            by_number[one.sequence].push_back(
                {one.created, rank, static_cast<int>(g), &one});
      for (const auto& [number, made] : by_number) {
        if (made.size() != group(static_cast<int>(g)).members.size())
          break;
        const std::string own = fingerprint(*made[0].work);
        if (std::ranges::all_of(made, [&](const Expiry& one) {
              return fingerprint(*one.work) == own;
            }))
          continue;
        const std::int64_t time =
            std::ranges::max_element(made, {}, &Expiry::time)->time;
        if (!first || time < first->first) {
          first = {time, static_cast<int>(g)};
          calls = made;
        }
        break;
      }
    }
    if (!first)
      return false;
    std::vector<const Expiry*> here;
    for (const Expiry& one : calls)
      here.push_back(&one);
    mismatch(first->first + 20 * kMillisecond, first->second, here, raised);
    return true;
  }

  std::string fingerprint(const Kept& one) const {
    const CallSite& site = job_.program.sites[one.site];
    const Tensor& tensor = site.inputs[0];
    return fmt::format(
        "CollectiveFingerPrint(SequenceNumber={}, OpType={}, TensorShape=[{}], "
        "TensorDtypes={}, TensorDeviceTypes=TensorOptions(dtype=float "
        "(default), device=cuda, layout=Strided (default), requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt)))",
        one.sequence, type_of(one, site), fmt::join(tensor.shape, ", "),
        tensor.dtype);
  }

  void raise(std::int64_t time, int rank, const std::string& error) {
    if (time > end_of(rank))
      return;
    codes_.try_emplace(rank, 1);
    say(time, rank, "Traceback (most recent call last):");
    say(time + 1, rank, "  File \"/job/train.py\", line 50, in <module>");
    say(time + 2, rank, "    dist.all_reduce(total)");
    say(time + 3, rank, "RuntimeError: " + error);
    causes_.try_emplace(rank, time);
    spread_end(rank, time + kSecond);
  }

  void mismatch(std::int64_t time, int g,
                const std::vector<const Expiry*>& here, std::set<int>& raised) {
    std::map<std::string, std::vector<int>> votes;
    std::map<int, std::string> prints;
    for (const Expiry* const one : here) {
      prints[one->rank] = fingerprint(*one->work);
      votes[prints[one->rank]].push_back(one->rank);
    }
    if (votes.size() < 2)
      return;
    const bool lockstep = std::ranges::all_of(here, [&](const Expiry* one) {
      return one->work->sequence == here[0]->work->sequence;
    });
    if (!lockstep)
      return;
    for (const Expiry* const one : here) {
      const auto other = std::ranges::find_if(prints, [&](const auto& print) {
        return print.second != prints[one->rank];
      });
      raise(time + one->rank * 1000, one->rank,
            fmt::format("Detected mismatch between collectives on ranks. Rank "
                        "{} is running collective: {}, but Rank {} is running "
                        "collective: {}.Collectives differ in the following "
                        "aspects: \t Op type",
                        group(g).position(one->rank), prints[one->rank],
                        group(g).position(other->first), other->second));
      raised.insert(one->rank);
    }
    const auto few = std::ranges::min_element(
        votes, {}, [](const auto& vote) { return vote.second.size(); });
    if (votes.size() == 2 && few->second.size() * 2 < here.size() &&
        few->second == made_.truth.culprits && g == 0)
      made_.tells = true;
  }

  void miss(std::int64_t time, int g, const std::vector<const Expiry*>& here,
            std::set<int>& raised) {
    const cluster::Group& of = group(g);
    const auto came = [&](int rank) {
      return std::ranges::count(here, rank, &Expiry::rank) > 0;
    };
    std::vector<int> missing;
    std::vector<int> ranks;
    for (const int rank : of.members)
      if (!came(rank)) {
        missing.push_back(of.position(rank));
        ranks.push_back(rank);
      }
    for (const Expiry* const one : here) {
      const int place = of.position(one->rank);
      std::string error = fmt::format(
          "ProcessGroupWrapper: Monitored Barrier encountered error running "
          "collective: {}. Error: \n",
          fingerprint(*one->work));
      if (place == 0) {
        for (const int other : missing)
          say(time - 5, one->rank,
              fmt::format("[{} ProcessGroupGloo.cpp:144] [Rank 0]: Rank {} "
                          "failed to pass monitoredBarrier in {} ms",
                          glog(time - 5, 'E'), other, job_.timeout_ms));
        error += fmt::format(
            "[Rank 0]: Ranks {} failed to pass monitoredBarrier in {} ms",
            fmt::join(missing, ", "), job_.timeout_ms);
        if (g == 0 && ranks == made_.truth.culprits &&
            (time <= end_of(one->rank)) && made_.truth.kind == "never_joined")
          made_.tells = true;
      } else {
        error += fmt::format(
            "Rank {} successfully reached monitoredBarrier, but received "
            "errors while waiting for send/recv from rank 0. Please check "
            "rank 0 logs for faulty rank.\n Original exception: \n"
            "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] "
            "Connection closed by peer [10.0.0.3]:35521",
            place);
      }
      raise(time + 10 * kMillisecond * place, one->rank, error);
      raised.insert(one->rank);
    }
  }

  // Who waits gets an exception, and its end those of the others.
  void close_connections(const std::vector<Expiry>& all) {
    std::optional<std::int64_t> first;
    std::set<int> raised;
    for (const int rank : dead_)
      first =
          std::min(first.value_or(kForever), struck(rank) + 50 * kMillisecond);
    const bool by_death = first.has_value();
    for (const Expiry& one : all) {
      if (!raised.insert(one.rank).second)
        continue;
      const bool closed = by_death || first;
      const std::int64_t time =
          closed ? std::max(*first + (10 + one.rank % 7) * kMillisecond,
                            one.work->created)
                 : one.time;
      if (time > end_of(one.rank))
        continue;
      if (!first)
        first = time;
      gave_up_[static_cast<std::size_t>(one.rank)] = time;
      raise(time, one.rank,
            closed
                ? fmt::format("[/pytorch/third_party/gloo/gloo/transport/tcp/"
                              "pair.cc:{}] Connection closed by peer "
                              "[10.0.{}.{}]:35521",
                              534, one.rank / 256, one.rank % 256)
                : fmt::format("[/pytorch/third_party/gloo/gloo/transport/tcp/"
                              "unbound_buffer.cc:78] Timed out waiting {}ms "
                              "for recv operation to complete",
                              job_.timeout_ms));
    }
    if (first)
      chat(*first);
  }

  // That those at fault were there when all others had given up, and had not
  // given up themselves.
  bool outlived() const {
    if (made_.truth.kind != "never_joined")
      return false;
    std::int64_t first = kForever;
    std::int64_t last = 0;
    for (int rank = 0; rank < job_.world; ++rank) {
      const std::int64_t time = gave_up_[static_cast<std::size_t>(rank)];
      if (culprit(rank) != (time == kNever))
        return false;
      if (time == kNever)
        continue;
      first = std::min(first, time);
      last = std::max(last, time);
    }
    if (first == kForever || options_.style == LogStyle::kPlain)
      return false;
    return std::ranges::all_of(made_.truth.culprits, [&](int rank) {
      return std::ranges::any_of(lines_, [&](const Line& line) {
        return line.rank == rank &&
               line.time > last + std::max(2 * kSecond, last - first);
      });
    });
  }

  void end_launchers() {
    const int nodes = node_of(job_.world - 1) + 1;
    for (int node = 0; node < nodes; ++node) {
      std::vector<std::pair<std::int64_t, int>> failed;
      std::int64_t end = kForever;
      for (int rank = node * options_.ranks_per_node;
           rank < std::min(job_.world, (node + 1) * options_.ranks_per_node);
           ++rank) {
        end = std::min(end, end_of(rank));
        const auto cause = causes_.find(rank);
        if (cause != causes_.end() && codes_.contains(rank))
          failed.emplace_back(cause->second, rank);
      }
      std::ranges::sort(failed);
      if (failed.empty() || end == kForever)
        continue;
      if (options_.launcher == Launcher::kTorchrun)
        write_box(node, end + kSecond, failed);
      else if (options_.launcher == Launcher::kSlurm)
        list_tasks(node, failed);
      else if (options_.launcher == Launcher::kMpirun && !mpirun_ended_) {
        mpirun_ended_ = true;
        lines_.push_back(
            {failed[0].first + kSecond, kNode - node,
             fmt::format(
                 "mpirun noticed that process rank {} with PID {} on "
                 "node node{} exited on signal {} ({}).",
                 failed[0].second, pid(failed[0].second), node,
                 std::abs(codes_.at(failed[0].second)),
                 codes_.at(failed[0].second) == -9 ? "Killed" : "Aborted"),
             false});
      }
    }
  }

  // srun joins what happens to several tasks of a node at once.
  void list_tasks(int node,
                  const std::vector<std::pair<std::int64_t, int>>& failed) {
    for (std::size_t begin = 0; begin < failed.size();) {
      std::size_t end = begin;
      std::vector<int> tasks;
      const int code = codes_.at(failed[begin].second);
      while (end < failed.size() && codes_.at(failed[end].second) == code &&
             failed[end].first < failed[begin].first + kSecond)
        tasks.push_back(failed[end++].second);
      std::ranges::sort(tasks);
      lines_.push_back(
          {failed[begin].first + 300 * kMillisecond, kNode - node,
           fmt::format("srun: error: node{}: task{} {}: {}", node,
                       tasks.size() > 1 ? "s" : "", fmt::join(tasks, ","),
                       code == -9   ? "Killed"
                       : code == -6 ? "Aborted (core dumped)"
                                    : "Exited with exit code 1"),
           false});
      begin = end;
    }
  }

  void write_box(int node, std::int64_t time,
                 std::vector<std::pair<std::int64_t, int>> failed) {
    // It looks now and then, and lists who has failed by then.
    const std::int64_t seen =
        failed[0].first + options_.monitor_ms * kMillisecond;
    std::erase_if(failed, [&](const auto& one) { return one.first > seen; });
    const auto put = [&](std::string text) {
      lines_.push_back({time++, kNode - node, std::move(text), false});
    };
    const auto [first_time, first] = failed[0];
    put(fmt::format(
        "E1115 {:02}:{:02}:{:02}.000000 {} torch/distributed/"
        "elastic/multiprocessing/api.py:869] failed (exitcode: {}) "
        "local_rank: {} (pid: {}) of binary: /usr/bin/python",
        Clock(time).hour, Clock(time).minute, Clock(time).second, 1000 + node,
        codes_.at(first), first % options_.ranks_per_node, pid(first)));
    put("Traceback (most recent call last):");
    put("  File \"/usr/bin/torchrun\", line 8, in <module>");
    put("    sys.exit(main())");
    put("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:");
    put("============================================================");
    put("train.py FAILED");
    put("------------------------------------------------------------");
    put("Failures:");
    const auto entry = [&](int index, const std::pair<std::int64_t, int>& one) {
      const auto [died, rank] = one;
      put(fmt::format("[{}]:", index));
      put("  time      : " + written(died, '_').substr(0, 19));
      put(fmt::format("  host      : node{}", node));
      put(fmt::format("  rank      : {} (local_rank: {})", rank,
                      rank % options_.ranks_per_node));
      put(fmt::format("  exitcode  : {} (pid: {})", codes_.at(rank),
                      pid(rank)));
      put("  error_file: <N/A>");
      put(codes_.at(rank) < 0
              ? fmt::format("  traceback : Signal {} ({}) received by PID {}",
                            -codes_.at(rank),
                            codes_.at(rank) == -9 ? "SIGKILL" : "SIGABRT",
                            pid(rank))
              : "  traceback : To enable traceback see: "
                "https://pytorch.org/docs/stable/elastic/errors.html");
    };
    for (std::size_t i = 1; i < failed.size(); ++i)
      entry(static_cast<int>(i), failed[i]);
    if (failed.size() == 1)
      put("  <NO_OTHER_FAILURES>");
    put("------------------------------------------------------------");
    put("Root Cause (first observed failure):");
    entry(0, {first_time, first});
    put("============================================================");
  }

  void lay_down() {
    Random cut(options_.seed + 3);
    for (const Line& line : lines_) {
      const bool rank = line.rank >= 0;
      std::string name = "job.log";
      if (line.rank == kKernel)
        name = "dmesg.log";
      else if (!rank && options_.launcher == Launcher::kTorchrun)
        name = options_.one_file
                   ? "job.log"
                   : fmt::format("agent_{}.log", kNode - line.rank);
      else if (rank && !options_.one_file)
        name = fmt::format("rank_{:04}.log", line.rank);
      std::string before;
      if (rank && options_.one_file && options_.launcher == Launcher::kSlurm)
        before = fmt::format("{:>4}: ", line.rank);
      else if (rank && options_.launcher == Launcher::kMpirun)
        before = fmt::format("[1,{}]<stderr>:", line.rank);
      else if (rank && options_.launcher == Launcher::kKubernetes)
        before = written(line.time, 'T', '.') + "Z ";
      if (rank &&
          ((line.by_torch && options_.style != LogStyle::kPlain) ||
           (options_.one_file && before.find(':') == before.npos) ||
           (options_.one_file && options_.launcher == Launcher::kKubernetes)))
        before += fmt::format("[rank{}]:", line.rank);
      std::string& file = made_.files[name];
      std::string text = line.text;
      if (options_.cuts && text.size() > 300 && cut.chance(10))
        text.resize(static_cast<std::size_t>(cut.between(80, 300)));
      while (true) {
        const std::size_t end = text.find('\n');
        if (options_.colours && rank && !line.by_torch)
          file += before + "\x1b[32m" + text.substr(0, end) + "\x1b[0m\n";
        else
          file += before + text.substr(0, end) + "\n";
        if (end == text.npos)
          break;
        text.erase(0, end + 1);
      }
    }
  }

  const cluster::Snapshot& job_;
  const LogOptions options_;
  Random random_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int64_t> gave_up_;
  std::vector<int> dead_;
  bool device_ = false;  // they died of it
  bool mpirun_ended_ = false;
  std::map<int, int> codes_;
  std::map<int, std::int64_t> causes_;  // when a rank failed by itself
  std::vector<Expiry> said_;
  std::vector<Line> lines_;
  JobLogs made_;
};

}  // namespace

std::string_view log_style_name(LogStyle style) {
  constexpr std::string_view kNames[] = {"named groups", "numbered groups",
                                         "no groups", "detail", "gloo"};
  return kNames[static_cast<std::size_t>(style)];
}

LogOptions draw_log_options(std::size_t index, bool gloo) {
  Random random(index * 2 + 1);
  const bool held = cluster::is_held_back(index);
  LogOptions drawn;
  drawn.style = gloo ? LogStyle::kGloo : LogStyle(random.below(4));
  drawn.launcher = Launcher(random.below(kLaunchers));
  drawn.ranks_per_node = random.chance(50) ? 8 : 4;
  drawn.one_file = random.chance(50);
  drawn.tells_size = random.chance(30);
  drawn.desync = random.chance(15);
  drawn.reasons = random.chance(80);
  drawn.chatter = random.chance(40);
  drawn.noise = random.chance(50);
  drawn.attempt = random.chance(held ? 15 : 10);
  drawn.colours = random.chance(held ? 20 : 10);
  drawn.cuts = random.chance(held ? 10 : 5);
  constexpr std::int64_t kWaits[] = {0, 0, 1'000, 30'000, 60'000};
  drawn.dump_wait_ms = kWaits[random.below(std::size(kWaits))];
  drawn.monitor_ms = random.chance(50) ? 100 : 5'000;
  constexpr std::int64_t kSpreads[] = {-1, -1, 200, 5'000, 60'000};
  drawn.spread_ms = kSpreads[random.below(std::size(kSpreads))];
  drawn.skew_ms = 0;
  drawn.seed = random.next() >> 8;
  return drawn;
}

JobLogs job_logs(const cluster::Snapshot& job, const LogOptions& options) {
  return Writer(job, options).write();
}

}  // namespace postflight::synthetic
