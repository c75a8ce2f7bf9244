// How often the diagnosis is right on a family of simulated jobs:
// family_report [--snapshots] [FIRST [COUNT [FOLDER]]]. Lists each job that it
// got wrong, prints precision and recall of each kind and scenario, and fails
// if they are too low. With FOLDER it leaves the dumps of the first job there.
//
// --snapshots takes the family whose dumps were taken at different moments.
// Of twenty jobs in a row ten are for tuning and ten are held back: the table
// has both halves.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/temporary_folder.h"
#include "flight/diagnosis/diagnosis.h"
#include "flight/model/job_loader.h"
#include "synthetic/family.h"

namespace postflight::synthetic {
namespace {

// What has been reached; it may only get better.
struct Floors {
  double precision = 0.99;
  double recall = 0.96;
  double fair = 0.98;  // recall, where nobody has to be named at times
};
constexpr Floors kAfterwardsFloors = {};
constexpr Floors kSnapshotFloors = {
    .precision = 0.92, .recall = 0.90, .fair = 0.90};

struct Tally {
  int jobs = 0;      // with that truth
  int found = 0;     // of those, told right
  int answered = 0;  // verdicts of that kind that accuse somebody
  int right = 0;     // of those
};

double ratio(int part, int whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / whole;
}

Result<Verdict> judge(const SyntheticJob& made) {
  const TemporaryFolder folder = TRY(TemporaryFolder::create());
  TRY(made.write(folder.path(), /*with_truth=*/false));
  const std::string path = folder.path();
  const Job job = TRY(load_job(std::span(&path, 1), {}, {}));
  return diagnose(Matching(job));
}

class Report {
 public:
  explicit Report(const Floors& floors) : floors_(floors) {}

  Result<> add(const FamilyMember& member) {
    const std::size_t index = member.index;
    const Result<SyntheticJob> made =
        make_job(member.options).in(fmt::format("job {}", index));
    if (!made)
      // A job may have no place for one of several faults.
      return member.scenario == Scenario::kAfterwards
                 ? Result<>(
                       fail(ErrorKind::kUsage, "{}", made.error().message()))
                 : Result<>();
    const Verdict verdict = TRY(judge(*made));
    Answer answer{std::string(kind_name(verdict.kind)), {}};
    for (const Rank culprit : verdict.culprits)
      answer.culprits.push_back(culprit.value);
    std::ranges::sort(answer.culprits);

    const Truth& truth = made->truth();
    const bool right = truth.allows(answer);
    fair_ += right || (answer.culprits.empty() && is_calm(verdict.kind) &&
                       need_not_show(member, truth))
                 ? 1
                 : 0;
    Tally& of_truth = tallies_[truth.kind];
    ++of_truth.jobs;
    of_truth.found += right ? 1 : 0;
    if (!answer.culprits.empty()) {
      Tally& of_answer = tallies_[answer.kind];
      ++of_answer.answered;
      of_answer.right += right ? 1 : 0;
    }
    count(fmt::format("{} {}", scenario_name(member.scenario),
                      index / 10 % 2 == 0 ? "tuned" : "held"),
          right);
    const bool moved = truth.kind == "in_progress";
    const bool hangs =
        !moved && truth.kind != "healthy" && truth.kind != "straggler";
    false_alarms_ +=
        moved && (!answer.culprits.empty() || !is_calm(verdict.kind)) ? 1 : 0;
    false_calms_ += hangs && is_calm(verdict.kind) &&
                            verdict.kind != VerdictKind::kInconclusive
                        ? 1
                        : 0;
    const bool slander = verdict.confidence == Confidence::kCertain &&
                         accuses_innocent(answer, truth);
    slandered_ += slander ? 1 : 0;
    if (!right)
      fmt::print("job {:3} {}: {} of {} ranks, {}; wrong: {} {} ({}{})\n",
                 index, describe(member.options.layout), expected(truth),
                 made->world(), situation(member), answer.kind,
                 ranks(answer.culprits), confidence_name(verdict.confidence),
                 slander ? ", slander" : "");
    return {};
  }

  bool finish() const {
    Tally all;
    fmt::print("\n{:18} {:>5} {:>7} {:>8} {:>10}\n", "kind", "jobs", "recall",
               "accused", "precision");
    for (const auto& [kind, tally] : tallies_) {
      print(kind, tally);
      all.jobs += tally.jobs;
      all.found += tally.found;
      all.answered += tally.answered;
      all.right += tally.right;
    }
    print("all", all);
    fmt::print("\n{:24} {:>5} {:>7}\n", "scenario", "jobs", "exact");
    for (const auto& [scenario, tally] : scenarios_)
      fmt::print("{:24} {:5} {:7.3f}\n", scenario, tally.jobs,
                 ratio(tally.found, tally.jobs));
    fmt::print("\nright, or nobody accused where dumps need not show who: {}\n",
               fair_);
    fmt::print("innocent ranks accused with certainty: {}\n", slandered_);
    fmt::print("moving jobs accused or called a hang: {}\n", false_alarms_);
    fmt::print("hangs called healthy or in progress: {}\n", false_calms_);
    return ratio(all.right, all.answered) >= floors_.precision &&
           ratio(all.found, all.jobs) >= floors_.recall &&
           ratio(fair_, all.jobs) >= floors_.fair && slandered_ == 0 &&
           false_alarms_ == 0 && false_calms_ == 0;
  }

 private:
  void count(const std::string& scenario, bool right) {
    Tally& tally = scenarios_[scenario];
    ++tally.jobs;
    tally.found += right ? 1 : 0;
  }

  // Says of nobody that he is at fault, nor that the job hangs.
  static bool is_calm(VerdictKind kind) {
    return kind == VerdictKind::kHealthy || kind == VerdictKind::kInProgress ||
           kind == VerdictKind::kInconclusive;
  }

  // Dumps of active work only have no past that would date a wait, and a rank
  // that is late looks like one with a wrong clock.
  static bool need_not_show(const FamilyMember& member, const Truth& truth) {
    return member.disturbance == Disturbance::kOnlyActive ||
           (member.disturbance == Disturbance::kClockSkew &&
            truth.kind == "straggler");
  }

  static void print(const std::string& kind, const Tally& tally) {
    fmt::print("{:18} {:5} {:7.3f} {:8} {:10.3f}\n", kind, tally.jobs,
               ratio(tally.found, tally.jobs), tally.answered,
               ratio(tally.right, tally.answered));
  }

  static bool accuses_innocent(const Answer& answer, const Truth& truth) {
    std::set<int> guilty(truth.culprits.begin(), truth.culprits.end());
    for (const Answer& other : truth.also)
      guilty.insert(other.culprits.begin(), other.culprits.end());
    return std::ranges::any_of(answer.culprits, [&](int culprit) {
      return !guilty.contains(culprit);
    });
  }

  static std::string ranks(const std::vector<int>& values) {
    if (values.size() > 6)
      return fmt::format("[{} ranks]", values.size());
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  static std::string expected(const Truth& truth) {
    return fmt::format("{} {}", truth.kind, ranks(truth.culprits));
  }
  static std::string describe(const Layout& layout) {
    return fmt::format("tp{} pp{} dp{} ep{} cp{}", layout.tensor,
                       layout.pipeline, layout.data, layout.expert,
                       layout.context);
  }
  static std::string situation(const FamilyMember& member) {
    return fmt::format("{} {} with {}{}{}{}", scenario_name(member.scenario),
                       fault_name(member.options.fault),
                       disturbance_name(member.disturbance),
                       member.options.timing ? ", timing" : "",
                       member.options.schedule.sync_often ? ", sync" : "",
                       member.options.schedule.batched ? ", batched" : "");
  }

  const Floors floors_;
  std::map<std::string, Tally> tallies_;
  std::map<std::string, Tally> scenarios_;
  int fair_ = 0;
  int slandered_ = 0;
  int false_alarms_ = 0;
  int false_calms_ = 0;
};

using Family = FamilyMember (*)(std::size_t);

int run(Family family, const Floors& floors, std::size_t first,
        std::size_t count) {
  Report report(floors);
  for (std::size_t index = first; index < first + count; ++index) {
    const Result<> added = report.add(family(index));
    if (!added) {
      fmt::print(stderr, "family_report: {}\n", added.error().message());
      return 2;
    }
  }
  return report.finish() ? 0 : 1;
}

}  // namespace
}  // namespace postflight::synthetic

int main(int argc, char** argv) {
  using namespace postflight::synthetic;
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool snapshots = std::erase(words, "--snapshots") > 0;
  const Family family = snapshots ? snapshot_member : family_member;
  const auto number = [&](std::size_t place, std::size_t otherwise) {
    return words.size() > place
               ? std::strtoull(words[place].c_str(), nullptr, 10)
               : otherwise;
  };
  if (words.size() > 2) {
    const auto job = make_job(family(number(0, 0)).options);
    if (!job || !job->write(words[2]))
      return 2;
  }
  return run(family, snapshots ? kSnapshotFloors : kAfterwardsFloors,
             number(0, 0), number(1, 500));
}
