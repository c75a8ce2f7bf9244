#include "flight/model/rank_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/ascii.h"

namespace postflight {
namespace {

constexpr std::array<std::string_view, 16> kDumpEndings = {
    ".gz",   ".zst", ".zstd", ".json", ".pkl",   ".pickle", ".p",   ".bin",
    ".dump", ".log", ".txt",  ".pt",   ".trace", ".fr",     ".dat", ".tmp"};

std::string_view folder_name(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  return slash == file.npos ? "" : base_name(file.substr(0, slash));
}

std::string_view without_endings(std::string_view name) {
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view ending : kDumpEndings)
      if (name.size() > ending.size() && name.ends_with(ending)) {
        name.remove_suffix(ending.size());
        cut = true;
      }
  }
  return name;
}

// A number in a file name.
struct Number {
  std::size_t begin = 0;
  std::size_t end = 0;
  Rank rank;
};

std::optional<Number> numeral_at(std::string_view name, std::size_t begin) {
  std::size_t end = begin;
  while (end < name.size() && is_digit(name[end]))
    ++end;
  std::int32_t value = 0;
  const auto [last, error] =
      std::from_chars(name.data() + begin, name.data() + end, value);
  if (error != std::errc() || last != name.data() + end)
    return std::nullopt;
  return Number{begin, end, {value}};
}

bool follows_rank(std::string_view name, std::size_t begin) {
  while (begin > 0 && std::string_view("_-.=").find(name[begin - 1]) !=
                          std::string_view::npos)
    --begin;
  if (begin < 4)
    return false;
  return std::ranges::equal(name.substr(begin - 4, 4), std::string_view("rank"),
                            [](char a, char b) { return (a | 0x20) == b; });
}

// The numbers after "rank" first, then from the last to the first.
std::vector<Number> numbers_of(std::string_view name) {
  name = without_endings(name);
  std::vector<Number> found;
  for (std::size_t i = name.size(); i > 0; --i) {
    const bool starts =
        is_digit(name[i - 1]) && (i == 1 || !is_digit(name[i - 2]));
    if (!starts)
      continue;
    if (const std::optional<Number> number = numeral_at(name, i - 1))
      found.push_back(*number);
  }
  std::stable_partition(found.begin(), found.end(), [&](const Number& number) {
    return follows_rank(name, number.begin);
  });
  return found;
}

std::vector<Number> numbers_behind(std::string_view name,
                                   std::string_view prefix) {
  const std::size_t at = name.find(prefix);
  if (at == name.npos)
    return {};
  const std::size_t begin = at + prefix.size();
  if (begin >= name.size() || !is_digit(name[begin]))
    return {};
  const std::optional<Number> number = numeral_at(name, begin);
  return number ? std::vector{*number} : std::vector<Number>();
}

std::vector<Number> numbers_matching(std::string_view name,
                                     const Pattern& pattern) {
  const std::optional<std::string_view> group = pattern.first_group(name);
  if (!group || group->empty())
    return {};
  const auto begin = static_cast<std::size_t>(group->data() - name.data());
  const std::optional<Number> number = numeral_at(name, begin);
  if (!number || number->end != begin + group->size())
    return {};
  return {*number};
}

// The parts of a name before and after the rank.
struct Around {
  std::string_view before;
  std::string_view after;
};

std::size_t common_ending(std::string_view a, std::string_view b) {
  const auto [first, second] =
      std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<std::size_t>(first - a.rbegin());
}

constexpr std::string_view kSeparators = "_-.=@+~ ";

// Whether all words of `text` are usual in names of dumps, such as
// "nccl_trace", so that it is not a host.
bool is_plain_name(std::string_view text) {
  constexpr std::string_view kWords[] = {"nccl", "xccl", "gloo", "hccl",
                                         "ucc",  "mpi",  "comm", "lib",
                                         "fr",   "dump", "rank", "trace"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("_-."), text.size());
    if (std::ranges::find(kWords, text.substr(0, end)) == std::end(kWords))
      return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

// The position of the number that was taken as the rank.
std::optional<Number> number_of(std::string_view name, Rank rank) {
  for (const Number& number : numbers_of(name))
    if (number.rank == rank)
      return number;
  return std::nullopt;
}

std::vector<Rank> ranks_in(const std::vector<Number>& numbers) {
  std::vector<Rank> ranks;
  ranks.reserve(numbers.size());
  for (const Number& number : numbers)
    ranks.push_back(number.rank);
  return ranks;
}

}  // namespace

std::vector<Rank> rank_candidates(std::string_view file_name) {
  return ranks_in(numbers_of(file_name));
}

Result<RankNames> RankNames::compile(const RankNameOptions& options) {
  if (!options.pattern)
    return RankNames(options.prefix, std::nullopt);
  Pattern pattern = TRY(Pattern::compile(*options.pattern));
  if (pattern.groups() == 0)
    return fail(ErrorKind::kUsage,
                "the rank pattern '{}' has no capture group: put the rank in "
                "parentheses",
                *options.pattern);
  return RankNames(options.prefix, std::move(pattern));
}

std::vector<Rank> RankNames::candidates(std::string_view file) const {
  const std::string_view name = base_name(file);
  return ranks_in(pattern_  ? numbers_matching(name, *pattern_)
                  : prefix_ ? numbers_behind(name, *prefix_)
                            : numbers_of(name));
}

std::vector<std::string> read_hosts(std::span<const NamedDump> dumps) {
  std::vector<std::string> hosts(dumps.size());
  if (dumps.size() < 2)
    return hosts;
  std::vector<Around> around;
  std::set<std::string_view> folders;
  for (const NamedDump& dump : dumps) {
    const std::string_view name = without_endings(base_name(dump.file));
    const std::optional<Number> number = number_of(name, dump.rank);
    around.push_back(
        number ? Around{name.substr(0, number->begin), name.substr(number->end)}
               : Around{name, ""});
    folders.insert(folder_name(dump.file));
  }
  std::size_t same = std::string_view::npos;
  bool after_differs = false;
  for (const Around& one : around) {
    same = std::min(same, common_ending(one.before, around[0].before));
    after_differs = after_differs || one.after != around[0].after;
  }
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    std::string_view before = around[i].before;
    before.remove_suffix(std::min(same, before.size()));
    hosts[i] = after_differs ? trimmed(around[i].after, kSeparators)
                             : trimmed(before, kSeparators);
    if (is_plain_name(hosts[i]))
      hosts[i].clear();
    if (hosts[i].empty() && folders.size() > 1)
      hosts[i] = folder_name(dumps[i].file);
  }
  return hosts;
}

}  // namespace postflight
