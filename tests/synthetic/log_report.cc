// What the logs of simulated jobs tell: log_report [FIRST [COUNT]] [--all]
// [--with-dumps] [--save FOLDER] [--untold]. An answer is exact if its kind and
// the ranks that it names are those of the truth; a rank that it names and that
// is not at fault is innocent. Prints a table of two halves, that on which
// rules are developed and that which is held back, and what is wrong in the
// first
// (--all: in both; --untold: also what its logs do not tell). Fails if an
// innocent is named, or anything is certain.
//
// With --with-dumps both are given, and the answer is compared with that of the
// dumps alone: where those are exact, it has to be exact, too.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/trace.h"
#include "base/temporary_folder.h"
#include "synthetic/cluster/snapshot.h"
#include "synthetic/job_logs.h"

namespace postflight::synthetic {
namespace {

struct Tally {
  int jobs = 0;
  int exact = 0;
  int told = 0;  // jobs whose logs say it
  int told_exact = 0;
  int nobody = 0;    // of those that are not exact
  int innocent = 0;  // likewise
  int alone = 0;     // exact by the dumps alone
};

struct Options {
  bool all = false;
  bool untold = false;
  bool with_dumps = false;
  std::string save;
};

class LogReport {
 public:
  explicit LogReport(Options options) : options_(std::move(options)) {}

  Result<> add(std::size_t index) {
    const cluster::Snapshot job = cluster::make_snapshot(index);
    const LogOptions drawn =
        draw_log_options(index, job.layout == cluster::Layout::kGloo);
    const JobLogs logs = job_logs(job, drawn);
    const TemporaryFolder folder = TRY(TemporaryFolder::create());
    write(logs, folder.path() / "logs");
    if (!options_.save.empty())
      write(logs, options_.save);
    JobEvidence evidence{.dumps = {}, .logs = {folder.path() / "logs"}};
    std::optional<Answer> alone;
    Truth truth = logs.truth;
    if (options_.with_dumps) {
      std::filesystem::create_directory(folder.path() / "dumps");
      TRY(job.write(folder.path() / "dumps"));
      evidence.dumps = {folder.path() / "dumps"};
      truth = job.truth;
      // Who died is no_dump to both, whether it could dump or not.
      if (logs.truth.kind == "no_dump")
        truth.accept.push_back("no_dump");
      const Verdict verdict =
          TRY(investigate({.dumps = evidence.dumps}, {.threads = 1})).verdict;
      alone = answer_of(verdict);
    }
    const Verdict verdict = TRY(investigate(evidence, {.threads = 1})).verdict;
    const Answer answer = answer_of(verdict);
    const bool exact = truth.allows(answer);
    const bool alone_exact = alone && truth.allows(*alone);
    const bool innocent = !exact && names_innocents(answer, truth);
    const bool certain =
        !options_.with_dumps && verdict.confidence == Confidence::kCertain;
    const bool worse = options_.with_dumps && alone_exact && !exact;
    const bool slander =
        innocent && (!alone || !names_innocents(*alone, truth));
    const std::string what =
        job.moving ? "(no fault)" : std::string(trouble_name(job.trouble));
    const bool held = cluster::is_held_back(index);
    for (Tally* const one :
         {&rows_[what][held], &rows_["all"][held],
          &rows_[fmt::format("of {}", log_style_name(drawn.style))][held]}) {
      ++one->jobs;
      one->exact += exact ? 1 : 0;
      one->told += logs.tells ? 1 : 0;
      one->told_exact += logs.tells && exact ? 1 : 0;
      one->nobody += !exact && answer.culprits.empty() ? 1 : 0;
      one->innocent += innocent ? 1 : 0;
      one->alone += alone_exact ? 1 : 0;
    }
    wrong_ += slander || certain || worse ? 1 : 0;
    if ((slander || certain || worse ||
         (!exact && (logs.tells || options_.untold))) &&
        (options_.all || !held))
      fmt::print(
          "{:4} {} {}{}{}{}: {} [{}] {}: {}; truth {} [{}] ({})\n", index, what,
          slander ? "INNOCENT " : "", certain ? "CERTAIN " : "",
          worse ? "WORSE " : "", logs.tells ? "told" : "untold", answer.kind,
          short_list(answer.culprits), confidence_name(verdict.confidence),
          verdict.summary, truth.kind, short_list(truth.culprits),
          log_style_name(drawn.style));
    return {};
  }

  bool finish() const {
    fmt::print("{:<18}", "");
    for (const char* const half : {"tuned", "held back"})
      fmt::print(" | {:^41}", half);
    fmt::print("\n{:<18}", "fault");
    for (int half = 0; half < 2; ++half)
      fmt::print(" | {:>5} {:>6} {:>6} {:>6} {:>6} {:>6}", "jobs", "exact",
                 options_.with_dumps ? "dumps" : "told", "exact", "nobody",
                 "innoc.");
    fmt::print("\n");
    for (const auto& [what, halves] : rows_) {
      fmt::print("{:<18}", what);
      for (const Tally& one : halves)
        fmt::print(" | {:>5} {:>6} {:>6} {:>6} {:>6} {:>6}", one.jobs,
                   one.exact, options_.with_dumps ? one.alone : one.told,
                   one.told_exact, one.nobody, one.innocent);
      fmt::print("\n");
    }
    return wrong_ == 0;
  }

 private:
  static void write(const JobLogs& logs, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    for (const auto& [name, text] : logs.files)
      std::ofstream(folder / name) << text;
  }
  static Answer answer_of(const Verdict& verdict) {
    Answer answer{std::string(kind_name(verdict.kind)), {}};
    for (const Rank rank : verdict.culprits)
      answer.culprits.push_back(rank.value);
    return answer;
  }
  static std::string short_list(const std::vector<int>& ranks) {
    return ranks.size() > 12 ? fmt::format("{} ranks", ranks.size())
                             : fmt::format("{}", fmt::join(ranks, ","));
  }
  static bool names_innocents(const Answer& answer, const Truth& truth) {
    return std::ranges::any_of(answer.culprits, [&](int rank) {
      const auto has = [&](const std::vector<int>& ranks) {
        return std::ranges::find(ranks, rank) != ranks.end();
      };
      return !has(truth.culprits) &&
             std::ranges::none_of(truth.also, [&](const Answer& other) {
               return has(other.culprits);
             });
    });
  }

  const Options options_;
  std::map<std::string, std::array<Tally, 2>> rows_;
  int wrong_ = 0;
};

}  // namespace
}  // namespace postflight::synthetic

int main(int argc, char** argv) {
  using namespace postflight;
  std::vector<std::string> words(argv + 1, argv + argc);
  synthetic::Options options;
  options.all = std::erase(words, "--all") > 0;
  options.untold = std::erase(words, "--untold") > 0;
  options.with_dumps = std::erase(words, "--with-dumps") > 0;
  if (const auto save = std::ranges::find(words, "--save");
      save != words.end() && save + 1 != words.end()) {
    options.save = *(save + 1);
    words.erase(save, save + 2);
  }
  const auto number = [&](std::size_t place, std::size_t otherwise) {
    return words.size() > place
               ? std::strtoull(words[place].c_str(), nullptr, 10)
               : otherwise;
  };
  synthetic::LogReport report(options);
  const std::size_t first = number(0, 0);
  for (std::size_t index = first; index < first + number(1, 200); ++index)
    if (const Result<> added = report.add(index); !added) {
      fmt::print(stderr, "log_report: job {}: {}\n", index,
                 added.error().message());
      return 2;
    }
  return report.finish() ? 0 : 1;
}
