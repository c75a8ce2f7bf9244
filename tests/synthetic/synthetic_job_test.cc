#include "synthetic/synthetic_job.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "synthetic/loaded_job.h"

namespace postflight::synthetic {
namespace {

using testing::IsEmpty;

// Layouts and schedules of all sorts.
std::vector<JobOptions> sorts() {
  std::vector<JobOptions> all;
  const Layout layouts[] = {
      {.tensor = 2, .pipeline = 2, .data = 2},
      {.tensor = 4, .pipeline = 1, .data = 4, .expert = 2},
      {.tensor = 1, .pipeline = 4, .data = 2, .context = 2},
      {.tensor = 1, .pipeline = 1, .data = 8},
      {.tensor = 2, .pipeline = 8, .data = 4, .expert = 4, .context = 2},
  };
  std::uint64_t seed = 0;
  for (const Layout& layout : layouts)
    for (const bool batched : {true, false})
      for (const bool sharded : {true, false}) {
        JobOptions options{.layout = layout, .seed = ++seed};
        options.schedule = {.steps = 3,
                            .microbatches = 3 + static_cast<int>(seed % 4),
                            .batched = batched,
                            .sequence_parallel = seed % 3 == 0,
                            .fully_sharded = sharded,
                            .coalesced = seed % 2 == 0,
                            .sync_often = seed % 5 == 0};
        options.names = static_cast<GroupNames>(seed % 3);
        all.push_back(options);
      }
  return all;
}

struct GroupOf {
  int rank;
  std::uint32_t group;
  auto operator<=>(const GroupOf&) const = default;
};

bool closes_transfers(const Job& job, const Entry& entry) {
  return job.operation(job.call(entry)).kind == OperationKind::kCoalesced &&
         entry.p2p_sequence > 0;
}

TEST(SyntheticJob, GivesTheSameBytesForTheSameSeed) {
  for (JobOptions options : sorts()) {
    const SyntheticJob one = made_job(options);
    const SyntheticJob again = made_job(options);
    EXPECT_EQ(one.dump(1), again.dump(1));
    options.seed += 1000;
    EXPECT_NE(one.dump(1), made_job(options).dump(1));
  }
}

TEST(SyntheticJob, RunsToItsEndWithoutAFault) {
  for (const JobOptions& options : sorts()) {
    const SyntheticJob job = made_job(options);
    EXPECT_FALSE(job.simulated().hung) << "seed " << options.seed;
    for (const std::vector<Record>& records : job.simulated().records)
      for (const Record& record : records)
        if (record.kind != RecordKind::kMember &&
            record.kind != RecordKind::kCoalescedMember) {
          ASSERT_GE(record.ready, record.created);
          ASSERT_GT(record.completed, record.ready);
        }
  }
}

TEST(SyntheticJob, HasTheGroupsOfItsLayout) {
  for (const JobOptions& options : sorts()) {
    const LoadedJob loaded = load(options);
    EXPECT_THAT(loaded.job.findings, IsEmpty());
    ASSERT_EQ(loaded.job.ranks.size(), loaded.made.topology().places.size());
    std::set<std::vector<int>> wanted, found;
    for (const JobGroup& group : loaded.made.topology().groups)
      wanted.insert(group.members);
    for (const Group& group : loaded.job.groups) {
      EXPECT_TRUE(group.configured);
      std::vector<int> members;
      for (const Rank member : group.members)
        members.push_back(member.value);
      found.insert(members);
    }
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(loaded.job.groups.size(), loaded.made.topology().groups.size());
  }
}

TEST(SyntheticJob, CountsAsTheRecorderDoes) {
  for (const JobOptions& options : sorts()) {
    const LoadedJob loaded = load(options);
    for (const RankDump& dump : loaded.job.ranks) {
      std::map<std::uint32_t, Entry> last;
      for (std::size_t i = 0; i < dump.entries.size(); ++i) {
        const Entry entry = dump.entries[i];
        const Call& call = loaded.job.call(entry);
        EXPECT_EQ(entry.record_id, static_cast<std::int64_t>(i));
        const auto [found, is_new] = last.try_emplace(call.group.value);
        const Entry before = found->second;  // all zero at first
        const std::int64_t steps = entry.sequence - before.sequence;
        const std::int64_t p2p_steps = entry.p2p_sequence - before.p2p_sequence;
        const std::int64_t calls = entry.operation_id - before.operation_id;
        const bool closing =
            loaded.job.operation(call).kind == OperationKind::kCoalesced;
        if (closing)
          EXPECT_EQ(steps + p2p_steps + calls, 0);
        else if (call.point_to_point != 0)
          EXPECT_TRUE(steps == 0 && (p2p_steps == 0 || p2p_steps == 1) &&
                      calls == 1);
        else
          EXPECT_TRUE(steps == 1 && p2p_steps == 0 && calls == 1);
        found->second = entry;
      }
      // Everything is complete, so the status has the last number.
      for (const GroupStatus& status : dump.statuses) {
        EXPECT_GT(status.last_enqueued, 0);
        EXPECT_LE(status.last_completed, status.last_enqueued);
      }
    }
  }
}

TEST(SyntheticJob, CallsTheSameOnAllMembers) {
  for (const JobOptions& options : sorts()) {
    const LoadedJob loaded = load(options);
    const Job& job = loaded.job;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::set<std::string>>
        names;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> members;
    for (const RankDump& dump : job.ranks)
      for (std::size_t i = 0; i < dump.entries.size(); ++i) {
        const Entry entry = dump.entries[i];
        const Call& call = job.call(entry);
        if (call.point_to_point != 0 ||
            job.operation(call).kind == OperationKind::kCoalesced)
          continue;
        const auto key = std::pair(call.group.value, entry.sequence);
        std::string text(job.text(call.name));
        for (const std::int64_t size : job.tables.encoded_sizes(call.inputs))
          text += fmt::format(" {}", size);
        names[key].insert(text);
        ++members[key];
      }
    for (const auto& [key, found] : names)
      ASSERT_EQ(found.size(), 1u) << *found.begin();
    for (const auto& [key, count] : members)
      ASSERT_EQ(count, job.group({key.first}).members.size());
  }
}

TEST(SyntheticJob, ClosesEveryBatch) {
  const LoadedJob loaded = load({.layout = {.pipeline = 4, .data = 2}});
  std::size_t closed = 0;
  for (const RankDump& dump : loaded.job.ranks) {
    bool open = false;
    for (std::size_t i = 0; i < dump.entries.size(); ++i) {
      const Entry entry = dump.entries[i];
      const bool transfer = loaded.job.call(entry).point_to_point != 0;
      if (transfer) {
        EXPECT_EQ(entry.state, State::kScheduled);
        EXPECT_FALSE(entry.retired);
      } else if (open) {
        EXPECT_TRUE(closes_transfers(loaded.job, entry));
        EXPECT_EQ(entry.state, State::kCompleted);
        ++closed;
      }
      open = transfer;
    }
    EXPECT_FALSE(open);
  }
  EXPECT_GT(closed, 100u);
}

TEST(SyntheticJob, KeepsTheNewestInTheRing) {
  const LoadedJob whole = load({.seed = 5});
  const LoadedJob wrapped = load({.ring = 50, .seed = 5});
  for (std::size_t rank = 0; rank < whole.job.ranks.size(); ++rank) {
    const Entries& all = whole.job.ranks[rank].entries;
    const Entries& kept = wrapped.job.ranks[rank].entries;
    ASSERT_EQ(kept.size(), 50u);
    ASSERT_GT(all.size(), 50u);
    for (std::size_t i = 0; i < kept.size(); ++i)
      EXPECT_EQ(kept[i].record_id, all[all.size() - 50 + i].record_id);
    EXPECT_EQ(kept[0].record_id, static_cast<std::int64_t>(all.size()) - 50);
  }
}

TEST(SyntheticJob, FillsEveryRing) {
  const LoadedJob loaded = load({.layout = {.pipeline = 2, .data = 4},
                                 .ring = 300,
                                 .fill_ring_with = 300});
  for (const RankDump& dump : loaded.job.ranks)
    EXPECT_EQ(dump.entries.size(), 300u);
}

TEST(SyntheticJob, SaysTheSameInJson) {
  JobOptions options{.timing = true,
                     .stacks = false,
                     .fault = FaultKind::kNeverJoined,
                     .seed = 8};
  const LoadedJob pickled = load(options);
  options.json = true;
  const LoadedJob json = load(options);
  ASSERT_EQ(pickled.job.ranks.size(), json.job.ranks.size());
  for (std::size_t rank = 0; rank < pickled.job.ranks.size(); ++rank) {
    const RankDump& one = pickled.job.ranks[rank];
    const RankDump& other = json.job.ranks[rank];
    EXPECT_FALSE(one.json);
    EXPECT_TRUE(other.json);
    ASSERT_EQ(one.entries.size(), other.entries.size());
    for (std::size_t i = 0; i < one.entries.size(); ++i) {
      const Entry a = one.entries[i];
      const Entry b = other.entries[i];
      EXPECT_EQ(a.record_id, b.record_id);
      EXPECT_EQ(a.sequence, b.sequence);
      EXPECT_EQ(a.created, b.created);
      EXPECT_EQ(a.completed, b.completed);
      EXPECT_EQ(a.state, b.state);
      EXPECT_EQ(a.retired, b.retired);
      EXPECT_DOUBLE_EQ(a.duration_ms, b.duration_ms);
      EXPECT_EQ(pickled.job.text(pickled.job.call(a).name),
                json.job.text(json.job.call(b).name));
    }
    ASSERT_EQ(one.statuses.size(), other.statuses.size());
    EXPECT_EQ(one.statuses[0].last_enqueued, other.statuses[0].last_enqueued);
  }
}

TEST(SyntheticJob, WritesWhatEachVersionHas) {
  const LoadedJob loaded =
      load({.versions = {"2.2", "2.3", "2.6", "2.9", "2.10"}});
  const auto& ranks = loaded.job.ranks;
  const auto library = [&](std::size_t rank) {
    return loaded.job.text(ranks[rank].library);
  };
  EXPECT_THAT(ranks[0].statuses, IsEmpty());
  EXPECT_FALSE(ranks[1].statuses.empty());
  EXPECT_EQ(library(1), "");
  EXPECT_EQ(library(2), "2.28.9");
  EXPECT_EQ(ranks[2].entries[0].thread, ThreadId{});
  EXPECT_NE(ranks[3].entries[0].thread, ThreadId{});
  EXPECT_EQ(library(4), "2.28.9");
}

TEST(SyntheticJob, ListsOnlyWhatIsActive) {
  const LoadedJob loaded =
      load({.only_active = true, .fault = FaultKind::kNeverJoined, .seed = 3});
  std::size_t pending = 0;
  for (const RankDump& dump : loaded.job.ranks)
    for (std::size_t i = 0; i < dump.entries.size(); ++i) {
      EXPECT_NE(dump.entries[i].state, State::kCompleted);
      ++pending;
    }
  EXPECT_GT(pending, 0u);
}

TEST(SyntheticJob, RecordsAsGlooDoes) {
  const LoadedJob loaded = load({.layout = {.tensor = 2, .data = 4},
                                 .backend = "gloo",
                                 .fault = FaultKind::kNeverJoined,
                                 .culprit = 5});
  std::size_t waiting = 0;
  for (const RankDump& dump : loaded.job.ranks) {
    for (std::size_t i = 0; i < dump.entries.size(); ++i) {
      EXPECT_EQ(dump.entries[i].state, State::kScheduled);
      waiting += dump.entries[i].retired ? 0 : 1;
    }
    if (dump.rank.value == 5) {
      EXPECT_TRUE(dump.entries[dump.entries.size() - 1].retired);
    }
  }
  EXPECT_GT(waiting, 0u);
  EXPECT_LE(waiting, 7u);
}

TEST(SyntheticJob, LosesDumpsOfTheInnocent) {
  const LoadedJob loaded = load({.layout = {.tensor = 2, .data = 16},
                                 .missing = 2,
                                 .empty = 1,
                                 .cut = 1,
                                 .fault = FaultKind::kNeverJoined,
                                 .seed = 4});
  const Truth& truth = loaded.made.truth();
  EXPECT_EQ(truth.no_dump.size(), 2u);
  ASSERT_EQ(truth.empty_dumps.size(), 1u);
  ASSERT_EQ(truth.cut_dumps.size(), 1u);
  EXPECT_EQ(loaded.job.ranks.size(), 29u);
  EXPECT_FALSE(loaded.job.find({truth.cut_dumps[0]})->complete);
  for (const int culprit : truth.culprits)
    EXPECT_NE(loaded.job.find({culprit}), nullptr);
}

TEST(SyntheticJob, RefusesLayoutsThatDontExist) {
  const auto message = [](const JobOptions& options) {
    const Result<SyntheticJob> made = make_job(options);
    return made ? "" : std::string(made.error().message());
  };
  EXPECT_EQ(message({.layout = {.data = 4, .expert = 3}}),
            "4 data-parallel ranks can't be divided by 3 expert ones");
  EXPECT_EQ(message({.layout = {.data = 1}}), "a job has at least 2 ranks");
  EXPECT_EQ(
      message({.layout = {.data = 2}, .fault = FaultKind::kPipelineStall}),
      "this job has no place for the fault pipeline_stall");
}

}  // namespace
}  // namespace postflight::synthetic
