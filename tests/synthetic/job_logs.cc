#include "synthetic/job_logs.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace postflight::synthetic {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kTimeout = 600'000;  // milliseconds

// "I1115 06:51:50.123456789"
std::string stamp(std::int64_t time, char level) {
  const std::int64_t seconds = time / 1'000'000'000 + 6 * 3600;
  return fmt::format("{}{}{:02} {:02}:{:02}:{:02}.{:09}", level, 11,
                     15 + seconds / 86'400, seconds / 3600 % 24,
                     seconds / 60 % 60, seconds % 60, time % 1'000'000'000);
}

std::int64_t number_of(const Record& record) {
  return record.point_to_point() || record.p2p_batch ? record.p2p_sequence
                                                     : record.sequence;
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

std::string type_of(const Record& record, const CallSite& site) {
  if (record.kind == RecordKind::kClosing)
    return "COALESCED";
  if (record.point_to_point())
    return record.send ? "SEND" : "RECV";
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
};

// How far a rank came in a group, as its watchdog knows it.
struct Status {
  std::int64_t enqueued = -1;
  std::int64_t completed = -1;
  const Record* pending = nullptr;
};

class Writer {
 public:
  Writer(const SyntheticJob& job, const LogOptions& options)
      : job_(job), options_(options) {
    if (job.options().fault == FaultKind::kNoDump)
      dead_.insert(job.truth().culprits.begin(), job.truth().culprits.end());
  }

  std::vector<Line> write() && {
    for (int rank = 0; rank < job_.world(); ++rank)
      start(rank);
    if (job_.simulated().hung)
      give_up();
    std::ranges::stable_sort(lines_, {}, &Line::time);
    return std::move(lines_);
  }

 private:
  void say(std::int64_t time, int rank, std::string text) {
    lines_.push_back({time, rank, std::move(text)});
  }

  void start(int rank) {
    say(rank, rank, fmt::format("loading shard {} of the data", rank));
    if (options_.tells_size)
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        const int group = job_.topology().group_of(rank, Axis(axis));
        if (group >= 0)
          say(rank, rank,
              fmt::format("[{} ProcessGroupNCCL.cpp:905] {}ProcessGroupNCCL "
                          "initialization options: size: {}, global rank: {}, "
                          "TIMEOUT(ms): {}, USE_HIGH_PRIORITY_STREAM: 0",
                          stamp(rank, 'I'), prefix(rank, Axis(axis)),
                          job_.topology()
                              .groups[static_cast<std::size_t>(group)]
                              .members.size(),
                          rank, kTimeout));
      }
    say(rank + 1000, rank, "step 1 loss 2.31");
  }

  std::string prefix(int rank, Axis axis) const {
    const auto at = static_cast<std::size_t>(axis);
    const Topology::Place& place = job_.topology().place(rank);
    const JobGroup& group =
        job_.topology().groups[static_cast<std::size_t>(place.group[at])];
    switch (options_.style) {
      case LogStyle::kNamedGroups:
        return fmt::format("[PG ID {} PG GUID {}({}) Rank {}] ",
                           place.local_id[at], group.name, group.description,
                           place.position[at]);
      case LogStyle::kNumbered:
        return fmt::format("[PG {} Rank {}] ", group.name, place.position[at]);
      case LogStyle::kPlain:
        break;
    }
    return fmt::format("[Rank {}] ", place.position[at]);
  }

  Status status_of(int rank, Axis axis) const {
    Status status;
    for (const Record& record :
         job_.simulated().records[static_cast<std::size_t>(rank)]) {
      if (record.axis != axis || record.in_batch() || record.unlaunched)
        continue;
      status.enqueued = number_of(record);
      if (record.completed == kNever) {
        if (status.pending == nullptr)
          status.pending = &record;
      } else if (status.pending == nullptr) {
        status.completed = number_of(record);
      }
    }
    return status;
  }

  std::string work_text(const Record& record, std::int64_t ran) const {
    const CallSite& site = job_.schedule().sites()[record.site];
    return fmt::format(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
        "OpType={}, NumelIn={}, NumelOut={}, Timeout(ms)={}) ran for {} "
        "milliseconds before timing out.",
        number_of(record), type_of(record, site), elements(site.inputs),
        elements(site.outputs), kTimeout, ran);
  }

  void give_up() {
    // Who died did so when the others began to wait.
    for (const int rank : dead_)
      die(rank);
    std::optional<std::int64_t> first;
    int first_rank = 0;
    struct Expiry {
      int rank;
      Axis axis;
      Status status;
      std::int64_t time;
    };
    std::vector<Expiry> all;
    for (int rank = 0; rank < job_.world(); ++rank) {
      if (dead_.contains(rank))
        continue;
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        if (job_.topology().group_of(rank, Axis(axis)) < 0)
          continue;
        const Status status = status_of(rank, Axis(axis));
        if (status.pending == nullptr)
          continue;
        const std::int64_t time = status.pending->created +
                                  kTimeout * kMillisecond +
                                  rank * 7'919'137LL % (100 * kMillisecond);
        all.push_back({rank, Axis(axis), status, time});
        if (!first || time < *first) {
          first = time;
          first_rank = rank;
        }
      }
    }
    if (!first)
      return;
    const std::int64_t end = *first + options_.kill_after_ms * kMillisecond;
    for (const Expiry& one : all)
      if (one.time <= end)
        expire(one.rank, one.axis, one.status, one.time);
    if (options_.style == LogStyle::kNamedGroups)
      for (int rank = 0; rank < job_.world(); ++rank)
        if (!dead_.contains(rank))
          tell_monitor(rank, first_rank, *first + 600 * kMillisecond);
  }

  void expire(int rank, Axis axis, const Status& status, std::int64_t time) {
    const int place =
        job_.topology().place(rank).position[static_cast<std::size_t>(axis)];
    const std::string work = work_text(
        *status.pending, (time - status.pending->created) / kMillisecond);
    say(time, rank,
        fmt::format("[{} ProcessGroupNCCL.cpp:683] [Rank {}] {}",
                    stamp(time, 'E'), place, work));
    const std::int64_t number = number_of(*status.pending);
    if (options_.style == LogStyle::kNamedGroups)
      say(time + 1, rank,
          fmt::format("[{} ProcessGroupNCCL.cpp:2241] {} failure detected by "
                      "watchdog at work sequence id: {} PG status: last "
                      "enqueued work: {}, last completed work: {}",
                      stamp(time + 1, 'E'), prefix(rank, axis), number,
                      status.enqueued, status.completed));
    if (options_.style == LogStyle::kNumbered)
      say(time + 1, rank,
          fmt::format("[{} ProcessGroupNCCL.cpp:1537] {}Timeout at NCCL work: "
                      "{}, last enqueued NCCL work: {}, last completed NCCL "
                      "work: {}.",
                      stamp(time + 1, 'E'), prefix(rank, axis), number,
                      status.enqueued,
                      status.completed < 0 ? 76'280'750'235'782'912
                                           : status.completed));
    say(time + 2, rank,
        fmt::format("[{} ProcessGroupNCCL.cpp:728] [Rank {}] To avoid data "
                    "inconsistency, we are taking the entire process down.",
                    stamp(time + 2, 'E'), place));
  }

  void tell_monitor(int rank, int first, std::int64_t time) {
    const Status status = status_of(rank, Axis::kWorld);
    say(time, rank,
        fmt::format(
            "[{} ProcessGroupNCCL.cpp:1858] {}Received a dump signal due to a "
            "collective timeout from {} and we will try our best to dump the "
            "debug info. Last enqueued NCCL work: {}, last completed NCCL "
            "work: {}.This is most likely caused by incorrect usages of "
            "collectives.",
            stamp(time, 'E'), prefix(rank, Axis::kWorld),
            rank == first ? "this local rank" : fmt::format(" rank {}", first),
            status.enqueued, status.completed));
  }

  void die(int rank) {
    if (!options_.reasons)
      return;
    const std::int64_t time = job_.simulated().end;
    say(time, rank, "Traceback (most recent call last):");
    say(time, rank, "  File \"/job/train.py\", line 88, in <module>");
    say(time, rank, "    batch = next(loader)");
    say(time, rank,
        fmt::format("OSError: [Errno 5] Input/output error: "
                    "'/data/shard-{:05}.tar'",
                    rank));
  }

  const SyntheticJob& job_;
  const LogOptions& options_;
  std::set<int> dead_;
  std::vector<Line> lines_;
};

}  // namespace

std::map<std::string, std::string> job_logs(const SyntheticJob& job,
                                            const LogOptions& options) {
  std::map<std::string, std::string> files;
  for (const Line& line : Writer(job, options).write()) {
    std::string& text =
        files[options.one_file ? "job.log"
                               : fmt::format("rank{:04}.log", line.rank)];
    if (options.prefixes)
      text += fmt::format("[rank{}]: ", line.rank);
    text += line.text + "\n";
  }
  return files;
}

}  // namespace postflight::synthetic
