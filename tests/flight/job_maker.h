#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

constexpr State kDone = State::kCompleted;
constexpr State kWaiting = State::kScheduled;

struct MadeEntry {
  std::int64_t sequence = 1;
  std::string name = "nccl:all_reduce";
  State state = State::kCompleted;
  std::int64_t size = 4;
  std::int64_t p2p_sequence = 0;
  std::uint32_t group = 0;
  std::string dtype = "Float";
  std::int64_t created = 1000;
  bool retired = false;
  std::int64_t started = 0;
  std::int64_t completed = 0;
  std::int64_t timeout_ms = 600'000;
  std::int64_t output_size = 0;  // 0: as large as the input
};

// Puts small jobs together without any files.
class JobMaker {
 public:
  // The groups come first, and are numbered as they come.
  JobMaker& group(const std::string& name, const std::vector<int>& members) {
    Group group{text(name), text(name + "_description"), {}, true};
    for (const int member : members)
      group.members.push_back({member});
    job_.groups.push_back(group);
    return *this;
  }

  // In order of ranks. `first_record` above 0: the ring has wrapped.
  JobMaker& rank(int rank, const std::vector<MadeEntry>& entries,
                 std::int64_t first_record = 0) {
    RankDump dump;
    dump.rank = {rank};
    dump.file = "rank_" + std::to_string(rank);
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
      if (job_.groups[g].has({rank}))
        dump.groups.push_back({g});
    for (const MadeEntry& made : entries)
      dump.entries.push_back(entry(made, first_record++));
    job_.ranks.push_back(std::move(dump));
    return *this;
  }

  // Marks the last rank's dump as cut off.
  JobMaker& cut_off() {
    job_.ranks.back().complete = false;
    return *this;
  }

  // Of the last rank's dump.
  JobMaker& version(const std::string& number) {
    job_.ranks.back().version = text(number);
    return *this;
  }

  Job job() { return std::move(job_); }

 private:
  TextId text(const std::string& text) { return job_.tables.add_text(text); }

  Entry entry(const MadeEntry& made, std::int64_t record) {
    const bool end = made.name.ends_with(":coalesced");
    Call call;
    call.name = text(made.name);
    call.group = {made.group};
    call.group_name = job_.groups[made.group].name;
    call.group_description = job_.groups[made.group].description;
    if (!end) {
      const std::vector<std::int64_t> sizes = {1, made.size};
      const std::vector<TextId> dtypes = {text(made.dtype)};
      call.inputs = call.outputs = job_.tables.add_sizes(sizes);
      if (made.output_size != 0) {
        const std::vector<std::int64_t> outputs = {1, made.output_size};
        call.outputs = job_.tables.add_sizes(outputs);
      }
      call.input_dtypes = call.output_dtypes = job_.tables.add_dtypes(dtypes);
    }
    call.timeout_ms = made.timeout_ms;
    call.point_to_point = made.name.find(":send") != made.name.npos ||
                          made.name.find(":recv") != made.name.npos;
    Entry entry;
    entry.call = job_.tables.add_call(call);
    entry.record_id = record;
    entry.sequence = made.sequence;
    entry.p2p_sequence = made.p2p_sequence;
    entry.operation_id = made.sequence + made.p2p_sequence;
    entry.created = made.created;
    entry.state = made.state;
    entry.retired = made.retired;
    entry.started = made.started;
    entry.completed = made.completed;
    return entry;
  }

  Job job_;
};

}  // namespace postflight
