// How often the diagnosis is right on a family of simulated jobs:
// family_report [FIRST [COUNT [FOLDER]]]. Names each job that it got wrong,
// prints precision and recall of each kind, and fails if they are too low. With
// FOLDER it leaves the dumps of the first job there, for someone to look at.

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
constexpr double kPrecision = 0.99;
constexpr double kRecall = 0.985;

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
  const Job job = TRY(load_job(std::span(&path, 1)));
  return diagnose(job);
}

class Report {
 public:
  Result<> add(std::size_t index) {
    const FamilyMember member = family_member(index);
    Result<SyntheticJob> made = make_job(member.options);
    if (!made)
      return tl::unexpected<Error>(
          std::move(made).error().in(fmt::format("job {}", index)));
    const Verdict verdict = TRY(judge(*made));
    Answer answer{std::string(kind_name(verdict.kind)), {}};
    for (const Rank culprit : verdict.culprits)
      answer.culprits.push_back(culprit.value);
    std::ranges::sort(answer.culprits);

    const Truth& truth = made->truth();
    const bool right = truth.allows(answer);
    Tally& of_truth = tallies_[truth.kind];
    ++of_truth.jobs;
    of_truth.found += right ? 1 : 0;
    if (!answer.culprits.empty()) {
      Tally& of_answer = tallies_[answer.kind];
      ++of_answer.answered;
      of_answer.right += right ? 1 : 0;
    }
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
    fmt::print("innocent ranks accused with certainty: {}\n", slandered_);
    return ratio(all.right, all.answered) >= kPrecision &&
           ratio(all.found, all.jobs) >= kRecall && slandered_ == 0;
  }

 private:
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
    return fmt::format("{} with {}{}{}{}", fault_name(member.options.fault),
                       disturbance_name(member.disturbance),
                       member.options.timing ? ", timing" : "",
                       member.options.schedule.sync_often ? ", sync" : "",
                       member.options.schedule.batched ? ", batched" : "");
  }

  std::map<std::string, Tally> tallies_;
  int slandered_ = 0;
};

int run(std::size_t first, std::size_t count) {
  Report report;
  for (std::size_t index = first; index < first + count; ++index) {
    const Result<> added = report.add(index);
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
  if (argc > 3) {
    const auto member = postflight::synthetic::family_member(
        std::strtoull(argv[1], nullptr, 10));
    const auto job = postflight::synthetic::make_job(member.options);
    if (!job || !job->write(argv[3]))
      return 2;
  }
  return postflight::synthetic::run(
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0,
      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500);
}
