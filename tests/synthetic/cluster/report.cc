// How often the diagnosis is right on snapshots of simulated jobs:
// snapshot_report [FIRST [COUNT [FOLDER]]]. Lists each job of the half that
// rules are developed on that it got wrong (--all: of both, and those that are
// fair, too), prints a table of both halves, and fails if innocents are accused
// with certainty or a moving job is accused. With FOLDER it leaves the dumps of
// the first job there.
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
#include "synthetic/cluster/snapshot.h"

namespace postflight::synthetic::cluster {
namespace {

struct Tally {
  int jobs = 0;
  int right = 0;  // exactly
  int fair = 0;   // with those that accuse nobody where dumps do not tell
};

class Report {
 public:
  explicit Report(bool all) : all_(all) {}

  Result<> add(std::size_t index, const Snapshot& made) {
    const TemporaryFolder folder = TRY(TemporaryFolder::create());
    TRY(made.write(folder.path()));
    const std::string path = folder.path();
    const Job job = TRY(load_job(std::span(&path, 1), {}, {}));
    const Verdict verdict = diagnose(Matching(job));
    Answer answer{std::string(kind_name(verdict.kind)), {}};
    for (const Rank culprit : verdict.culprits)
      answer.culprits.push_back(culprit.value);
    const bool right = made.truth.allows(answer);
    const bool fair =
        right || (made.doubtful && answer.culprits.empty() &&
                  (verdict.kind == VerdictKind::kInconclusive ||
                   (made.moving && verdict.kind == VerdictKind::kInProgress)));
    const bool held = is_held_back(index);
    const std::string half = held ? "held" : "tuned";
    count(made.moving ? "moving" : "hang", half, right, fair);
    count(fmt::format("  {}", trouble_name(made.trouble)), half, right, fair);
    count(fmt::format("layout {}", layout_name(made.layout)), half, right,
          fair);
    count(fmt::format("ranks {:4}", made.world), half, right, fair);
    const bool calm = verdict.kind == VerdictKind::kHealthy ||
                      verdict.kind == VerdictKind::kInProgress;
    const bool quiet = calm || verdict.kind == VerdictKind::kInconclusive;
    const bool at_fault = made.trouble == Trouble::kStraggler;
    const bool alarm =
        made.moving &&
        (at_fault ? !right && (!quiet || !answer.culprits.empty()) : !quiet);
    std::set<int> guilty(made.truth.culprits.begin(),
                         made.truth.culprits.end());
    for (const Answer& other : made.truth.also)
      guilty.insert(other.culprits.begin(), other.culprits.end());
    const bool slander = verdict.confidence == Confidence::kCertain && !right &&
                         std::ranges::any_of(answer.culprits, [&](int rank) {
                           return !guilty.contains(rank);
                         });
    const bool missed = !made.moving && calm;
    alarms_[held] += alarm ? 1 : 0;
    slanders_[held] += slander ? 1 : 0;
    misses_[held] += missed ? 1 : 0;
    if (!right && (all_ || (!held && !fair)))
      fmt::print("{:4} {}: {} {} but {} {} ({}{}{}{}{})\n", index, made.name,
                 made.truth.kind, text(made.truth.culprits), answer.kind,
                 text(answer.culprits), confidence_name(verdict.confidence),
                 alarm ? ", ALARM" : "", slander ? ", SLANDER" : "",
                 missed ? ", MISSED" : "", fair ? ", fair" : "");
    return {};
  }

  bool finish() const {
    fmt::print("\n{:24} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "", "jobs",
               "tuned", "fair", "jobs", "held", "fair");
    for (const auto& [row, halves] : rows_) {
      const auto cell = [&halves = halves](const std::string& half) {
        const auto found = halves.find(half);
        return found == halves.end() ? Tally{} : found->second;
      };
      const Tally one = cell("tuned"), two = cell("held");
      fmt::print("{:24} {:5} {:7.3f} {:7.3f} {:7} {:7.3f} {:7.3f}\n", row,
                 one.jobs, ratio(one.right, one.jobs),
                 ratio(one.fair, one.jobs), two.jobs,
                 ratio(two.right, two.jobs), ratio(two.fair, two.jobs));
    }
    fmt::print("\ninnocents accused with certainty: {} and {}\n", slanders_[0],
               slanders_[1]);
    fmt::print("moving jobs accused or called a hang: {} and {}\n", alarms_[0],
               alarms_[1]);
    fmt::print("hangs called healthy or in progress: {} and {}\n", misses_[0],
               misses_[1]);
    return slanders_[0] + slanders_[1] + alarms_[0] + alarms_[1] + misses_[0] +
               misses_[1] ==
           0;
  }

 private:
  static double ratio(int part, int whole) {
    return whole == 0 ? 1.0 : static_cast<double>(part) / whole;
  }
  static std::string text(const std::vector<int>& ranks) {
    return ranks.size() > 8 ? fmt::format("[{} ranks]", ranks.size())
                            : fmt::format("[{}]", fmt::join(ranks, ", "));
  }
  void count(const std::string& row, const std::string& half, bool right,
             bool fair) {
    Tally& tally = rows_[row][half];
    ++tally.jobs;
    tally.right += right ? 1 : 0;
    tally.fair += fair ? 1 : 0;
  }

  const bool all_;
  std::map<std::string, std::map<std::string, Tally>> rows_;
  int alarms_[2] = {};
  int slanders_[2] = {};
  int misses_[2] = {};
};

int run(std::size_t first, std::size_t count, const std::string& folder,
        bool all) {
  Report report(all);
  for (std::size_t index = first; index < first + count; ++index) {
    const Snapshot made = make_snapshot(index);
    if (index == first && !folder.empty() && !made.write(folder))
      return 2;
    const Result<> added = report.add(index, made);
    if (!added) {
      fmt::print(stderr, "snapshot_report: {}\n", added.error().message());
      return 2;
    }
  }
  return report.finish() ? 0 : 1;
}

}  // namespace
}  // namespace postflight::synthetic::cluster

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool all = std::erase(words, "--all") > 0;
  const auto number = [&](std::size_t place, std::size_t otherwise) {
    return words.size() > place
               ? std::strtoull(words[place].c_str(), nullptr, 10)
               : otherwise;
  };
  return postflight::synthetic::cluster::run(
      number(0, 0), number(1, 500), words.size() > 2 ? words[2] : "", all);
}
