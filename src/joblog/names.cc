#include "joblog/names.h"

#include "base/ascii.h"
#include "flight/model/rank_names.h"
#include "joblog/line.h"

#include <algorithm>
#include <array>
#include <set>

namespace postflight {
namespace {

// The last parts of a path, the last one first.
std::array<std::string_view, 3> last_parts(std::string_view path) {
  std::array<std::string_view, 3> parts;
  for (std::string_view& part : parts) {
    const std::size_t slash = path.rfind('/');
    part = path.substr(slash == path.npos ? 0 : slash + 1);
    path = path.substr(0, slash == path.npos ? 0 : slash);
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Whether a number in the name counts something other than ranks.
bool counts_something_else(const std::string& name) {
  constexpr std::array<std::string_view, 9> kWords = {
      "slurm", "job", "node", "host", "step", "gpu", "attempt", "epoch", "run"};
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    return name.find(word) != name.npos;
  });
}

bool is_plain_word(const std::string& host) {
  constexpr std::array<std::string_view, 6> kWords = {
      "stderr", "stdout", "err", "out", "log", "logs"};
  return host.find_first_not_of("0123456789._-") == host.npos ||
         std::ranges::find(kWords, lowered(host)) != kWords.end();
}

}  // namespace

std::vector<LogName> read_log_names(std::span<const std::string> files) {
  std::vector<LogName> logs(files.size());
  std::vector<std::vector<Rank>> numbers(files.size());
  std::vector<NamedDump> named;
  std::vector<std::size_t> named_at;
  std::set<Rank> seen;
  const auto most =
      std::max<std::int64_t>(64, 4 * static_cast<std::int64_t>(files.size()));
  bool are_ranks = files.size() > 1;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto [base, folder, above] = last_parts(files[i]);
    numbers[i] = rank_candidates(base);
    const std::string name = lowered(base);
    const std::size_t word = name.find("rank");
    if (is_number(folder) && above.starts_with("attempt_"))
      logs[i].local_rank = leading_rank(folder);
    if (word != name.npos && !numbers[i].empty()) {
      const bool local = name.find("local") < word;
      (local ? logs[i].local_rank : logs[i].rank) = numbers[i][0];
      named.push_back({files[i], numbers[i][0]});
      named_at.push_back(i);
    }
    are_ranks = are_ranks && word == name.npos && !numbers[i].empty() &&
                !counts_something_else(name) && numbers[i][0].value < most &&
                seen.insert(numbers[i][0]).second;
  }
  const std::vector<std::string> hosts = read_hosts(named);
  for (std::size_t i = 0; i < named.size(); ++i)
    if (!is_plain_word(hosts[i]))
      logs[named_at[i]].host = hosts[i];
  if (are_ranks)
    for (std::size_t i = 0; i < files.size(); ++i)
      logs[i].rank = numbers[i][0];
  return logs;
}

}  // namespace postflight
