// What the logs of simulated jobs alone tell: log_report [FIRST [COUNT [all]]]
// prints what is wrong, or with a third argument all that is not exact. The
// answers are right if they name just the ranks at fault, open if they name
// nobody, and wrong if they name another rank. No answer may be wrong.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/trace.h"
#include "base/temporary_folder.h"
#include "synthetic/family.h"
#include "synthetic/job_logs.h"

namespace postflight::synthetic {
namespace {

struct Count {
  int right = 0;
  int open = 0;
  int wrong = 0;
};

LogOptions draw(std::size_t index) {
  Random random(index * 2 + 1);
  LogOptions options;
  options.style = LogStyle(index % kLogStyles);
  options.one_file = random.chance(50);
  options.prefixes = options.one_file || random.chance(70);
  options.tells_size = random.chance(30);
  options.reasons = random.chance(70);
  options.kill_after_ms = random.chance(70) ? 60'000 : random.between(5, 900);
  return options;
}

bool names_innocents(const Verdict& verdict, const Truth& truth) {
  return std::ranges::any_of(verdict.culprits, [&](Rank rank) {
    const auto has = [&](const std::vector<int>& ranks) {
      return std::ranges::find(ranks, rank.value) != ranks.end();
    };
    return !has(truth.culprits) &&
           std::ranges::none_of(truth.also, [&](const Answer& answer) {
             return has(answer.culprits);
           });
  });
}

int report(std::size_t first, std::size_t count, bool show_open) {
  std::map<std::string_view, Count> faults;
  std::map<std::size_t, Count> styles;
  int wrong = 0;
  for (std::size_t index = first; index < first + count; ++index) {
    const FamilyMember member = family_member(index);
    if (member.options.backend != "nccl")
      continue;
    const Result<SyntheticJob> job = make_job(member.options);
    const Result<TemporaryFolder> folder = TemporaryFolder::create();
    if (!job || !folder)
      return 2;
    const LogOptions options = draw(index);
    for (const auto& [name, text] : job_logs(*job, options))
      std::ofstream(folder->path() / name) << text;
    const Result<Investigation> found =
        investigate({.dumps = {}, .logs = {folder->path()}}, {.threads = 1});
    if (!found) {
      fmt::print("{}: {}\n", index, found.error().message());
      return 2;
    }
    const Verdict& verdict = found->verdict;
    const Truth& truth = job->truth();
    std::vector<int> culprits;
    for (const Rank rank : verdict.culprits)
      culprits.push_back(rank.value);
    const bool exact =
        truth.allows({std::string(kind_name(verdict.kind)), culprits});
    const bool bad = names_innocents(verdict, truth) ||
                     verdict.kind == VerdictKind::kHealthy ||
                     verdict.confidence == Confidence::kCertain;
    const std::string_view fault = fault_name(member.options.fault);
    for (Count* const one : {&faults[fault], &styles[index % kLogStyles]}) {
      one->wrong += bad ? 1 : 0;
      one->right += !bad && (exact || !culprits.empty()) ? 1 : 0;
      one->open += !bad && !exact && culprits.empty() ? 1 : 0;
    }
    wrong += bad ? 1 : 0;
    if (bad || (show_open && !exact)) {
      fmt::print("{}: {} {} [{}] {}: {}; truth {} [{}]\n", index, fault,
                 kind_name(verdict.kind), fmt::join(culprits, ","),
                 confidence_name(verdict.confidence), verdict.summary,
                 truth.kind, fmt::join(truth.culprits, ","));
    }
  }
  fmt::print("{:<18} {:>6} {:>6} {:>6}\n", "fault", "right", "open", "wrong");
  for (const auto& [fault, one] : faults)
    fmt::print("{:<18} {:>6} {:>6} {:>6}\n", fault, one.right, one.open,
               one.wrong);
  for (const auto& [style, one] : styles)
    fmt::print("style {:<12} {:>6} {:>6} {:>6}\n", style, one.right, one.open,
               one.wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace postflight::synthetic

int main(int argc, char** argv) {
  const auto number = [&](int place, std::size_t other) {
    if (argc <= place)
      return other;
    std::size_t value = other;
    const std::string_view text = argv[place];
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  return postflight::synthetic::report(number(1, 0), number(2, 200), argc > 3);
}
