#include "joblog/host_map.h"

#include "base/ascii.h"
#include "joblog/node_list.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace postflight {
namespace {

constexpr std::size_t kQuoted = 80;  // bytes of a line that an error quotes

// A number up to the largest rank.
std::optional<std::uint32_t> count_in(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || last != end || value > 0x7fffffff)
    return std::nullopt;
  return value;
}

// Without the quotes around it, if any.
std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == text.back() &&
      (text.front() == '"' || text.front() == '\''))
    return text.substr(1, text.size() - 2);
  return text;
}

// Without a comment: a # at the start or after a space, and all that follows.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || kSpaces.find(line[i - 1]) != kSpaces.npos))
      return trimmed(line.substr(0, i));
  return trimmed(line);
}

// Words separated by spaces or, without any, by commas outside brackets.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(kSpaces), rest.size());
    std::string_view field = rest.substr(0, end);
    rest = trimmed(rest.substr(end));
    while (!rest.empty() && field.ends_with(','))
      field.remove_suffix(1);
    if (!field.empty())
      fields.push_back(unquoted(field));
  }
  if (fields.size() != 1)
    return fields;
  std::string_view list = fields[0];
  fields.clear();
  while (!list.empty())
    fields.push_back(unquoted(take_list_item(list)));
  return fields;
}

// "5", "0-7" or "0-7,16-23"
bool is_rank_set(std::string_view text) {
  return !text.empty() && is_digit(text.front()) &&
         text.find_first_not_of("0123456789-,") == text.npos;
}

// A host name or a list of them, perhaps with brackets.
bool is_host_expression(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_:@%[],").find(c) != std::string_view::npos;
  });
}

// The count in "x8", "ntasks-per-node=8" or "8(x4),2"; nothing for other words.
std::optional<std::string_view> task_counts(std::string_view word) {
  constexpr std::array<std::string_view, 3> kNames = {
      "--ntasks-per-node=", "ntasks-per-node=", "tasks-per-node="};
  for (const std::string_view name : kNames)
    if (word.starts_with(name))
      return word.substr(name.size());
  if (word.size() > 1 && word[0] == 'x' && is_digit(word[1]))
    return word.substr(1);
  if (!word.empty() && is_digit(word[0]) && word.find("(x") != word.npos)
    return word;
  return std::nullopt;
}

// Slurm's variables, the most specific first.
constexpr std::array<std::string_view, 3> kNodeVariables = {
    "slurm_step_nodelist", "slurm_job_nodelist", "slurm_nodelist"};
constexpr std::array<std::string_view, 3> kTaskVariables = {
    "slurm_step_tasks_per_node", "slurm_tasks_per_node",
    "slurm_ntasks_per_node"};

// The text from the most specific of several variables.
struct Best {
  std::string_view text;
  std::size_t place = std::string_view::npos;
  std::uint64_t line = 0;

  void offer(std::string_view other, std::size_t at, std::uint64_t where) {
    if (at < place)
      *this = {other, at, where};
  }
};

template <std::size_t kSize>
std::size_t place_in(const std::array<std::string_view, kSize>& names,
                     std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) -
                                  names.begin());
}

}  // namespace

class HostMapBuilder {
 public:
  HostMapBuilder(std::optional<std::uint64_t> world_size, const Limits& limits)
      : world_size_(world_size), limits_(limits) {}

  Result<> read_line(std::string_view line, std::uint64_t number);
  Result<HostMap> finish();
  // The line that an error from finish() refers to; 0 if it is the whole text.
  std::uint64_t line() const { return line_; }

 private:
  // A host whose ranks follow those of the host before it.
  struct Listed {
    std::uint32_t host = 0;
    std::optional<std::uint32_t> ranks;
  };

  Result<bool> read_variable(std::string_view line);
  bool read_header(const std::vector<std::string_view>& fields);
  Result<> read_fields(const std::vector<std::string_view>& fields,
                       std::string_view line);
  Result<> read_slots(const std::vector<std::string_view>& fields);
  Result<> read_list(std::string_view list, std::string_view counts);
  Result<> read_word(std::string_view word);
  Result<> map_ranks(std::string_view ranks, std::string_view host);
  Result<> check_host(std::string_view host) const;
  Result<> list_host(std::string_view host, std::optional<std::uint32_t> ranks);
  Result<std::uint32_t> host_number(std::string_view host);
  Result<> add_places(std::uint32_t first, std::uint32_t count,
                      std::uint32_t host);
  Result<> count_listed();
  Result<> deal_evenly();

  std::optional<std::uint64_t> world_size_;
  const Limits& limits_;
  HostMap map_;
  std::vector<Listed> listed_;
  Best nodes_;
  Best tasks_;
  std::uint64_t line_ = 0;
  std::uint64_t list_line_ = 0;  // of a list without a number of ranks
  // Columns of a table with a header.
  std::optional<std::size_t> rank_column_;
  std::optional<std::size_t> host_column_;
};

Result<std::uint32_t> HostMapBuilder::host_number(std::string_view host) {
  const auto found = map_.numbers_.find(host);
  if (found != map_.numbers_.end())
    return found->second;
  TRY(check_host(host));
  if (map_.hosts_.size() >= limits_.max_listed_hosts)
    return fail(ErrorKind::kRefused,
                "more than {} hosts are listed, the most allowed",
                limits_.max_listed_hosts);
  const auto next = static_cast<std::uint32_t>(map_.hosts_.size());
  map_.hosts_.emplace_back(host);
  map_.numbers_.emplace(host, next);
  return next;
}

Result<> HostMapBuilder::check_host(std::string_view host) const {
  if (!is_host_expression(host) || host.find_first_of("[],") != host.npos ||
      host.size() > 255)
    return fail(ErrorKind::kUsage, "'{}' is not a valid host name",
                host.substr(0, kQuoted));
  return {};
}

Result<> HostMapBuilder::list_host(std::string_view host,
                                   std::optional<std::uint32_t> ranks) {
  if (!map_.places_.empty())
    return fail(ErrorKind::kUsage,
                "'{}' has no rank, but the lines before it do",
                host.substr(0, kQuoted));
  if (const std::size_t at = host.rfind('@'); at != host.npos)
    host.remove_prefix(at + 1);  // user@host
  if (listed_.size() >= limits_.max_listed_ranks)
    return fail(ErrorKind::kRefused,
                "more than {} ranks are listed, the most allowed",
                limits_.max_listed_ranks);
  const auto number = TRY(host_number(host));
  listed_.push_back({number, ranks});
  return {};
}

Result<> HostMapBuilder::add_places(std::uint32_t first, std::uint32_t count,
                                    std::uint32_t host) {
  if (count > limits_.max_listed_ranks - map_.places_.size())
    return fail(ErrorKind::kRefused,
                "more than {} ranks are listed, the most allowed",
                limits_.max_listed_ranks);
  for (std::uint32_t i = 0; i < count; ++i)
    map_.places_.push_back({{static_cast<std::int32_t>(first + i)}, host});
  return {};
}

Result<> HostMapBuilder::map_ranks(std::string_view ranks,
                                   std::string_view host) {
  if (!listed_.empty())
    return fail(ErrorKind::kUsage,
                "'{}' has a rank, but the lines before it do not",
                host.substr(0, kQuoted));
  const std::uint32_t where = TRY(host_number(host));
  for (std::string_view rest = ranks; !rest.empty();) {
    const std::string_view item = take_list_item(rest);
    const std::size_t dash = item.find('-');
    const std::optional<std::uint32_t> first = count_in(item.substr(0, dash));
    const std::optional<std::uint32_t> last =
        dash == item.npos ? first : count_in(item.substr(dash + 1));
    if (!first || !last || *last < *first)
      return fail(ErrorKind::kUsage, "'{}' is neither a rank nor a range",
                  item.substr(0, kQuoted));
    TRY(add_places(*first, *last - *first + 1, where));
  }
  return {};
}

// "NAME=value" as env prints it. Only Slurm's variables matter.
Result<bool> HostMapBuilder::read_variable(std::string_view line) {
  if (line.starts_with("export "))
    line = trimmed(line.substr(7));
  const std::size_t equals = line.find('=');
  const std::string name = lowered(line.substr(0, equals));
  if (equals == line.npos || !name.starts_with("slurm_"))
    return false;
  const std::string_view value = unquoted(trimmed(line.substr(equals + 1)));
  if (const std::size_t at = place_in(kNodeVariables, name);
      at < kNodeVariables.size())
    nodes_.offer(value, at, line_);
  if (const std::size_t at = place_in(kTaskVariables, name);
      at < kTaskVariables.size())
    tasks_.offer(value, at, line_);
  return true;
}

bool HostMapBuilder::read_header(const std::vector<std::string_view>& fields) {
  std::optional<std::size_t> rank;
  std::optional<std::size_t> host;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = lowered(fields[i]);
    if (name == "rank" || name == "global_rank")
      rank = i;
    else if (name == "host" || name == "hostname" || name == "node")
      host = i;
  }
  if (!rank || !host)
    return false;
  rank_column_ = rank;
  host_column_ = host;
  return true;
}

Result<> HostMapBuilder::read_slots(
    const std::vector<std::string_view>& fields) {
  std::optional<std::uint32_t> slots;
  for (std::size_t i = 1; i < fields.size(); ++i) {
    if (!fields[i].starts_with("slots="))
      continue;
    slots = count_in(fields[i].substr(6));
    if (!slots)
      return fail(ErrorKind::kUsage, "'{}' is not a valid number of slots",
                  fields[i].substr(0, kQuoted));
  }
  return list_host(fields[0], slots);
}

Result<> HostMapBuilder::read_list(std::string_view list,
                                   std::string_view counts) {
  const std::vector<std::string> hosts = TRY(expand_node_list(list, limits_));
  std::vector<std::uint32_t> ranks;
  if (!counts.empty())
    ranks = TRY(expand_task_counts(counts, hosts.size(), limits_));
  else
    list_line_ = line_;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    TRY(list_host(hosts[i], counts.empty()
                                ? std::optional<std::uint32_t>()
                                : std::optional<std::uint32_t>(ranks[i])));
  return {};
}

Result<> HostMapBuilder::read_word(std::string_view word) {
  const std::optional<std::string_view> counts = task_counts(word);
  const bool only_number = is_rank_set(word) && !listed_.empty();
  if (counts || only_number) {
    tasks_.offer(counts ? *counts : word, kTaskVariables.size(), line_);
    return {};
  }
  if (const std::size_t close = word.rfind(']'); close != word.npos)
    if (const auto glued = task_counts(word.substr(close + 1)))
      return read_list(word.substr(0, close + 1), *glued);
  if (word.find_first_of("[],") != word.npos)
    return read_list(word, "");
  const std::size_t colon = word.find(':');
  if (colon != word.npos && word.find(':', colon + 1) == word.npos)
    if (const auto slots = count_in(word.substr(colon + 1)))
      return list_host(word.substr(0, colon), slots);
  return list_host(word, std::nullopt);
}

Result<> HostMapBuilder::read_fields(
    const std::vector<std::string_view>& fields, std::string_view line) {
  if (rank_column_ && host_column_) {
    if (std::max(*rank_column_, *host_column_) >= fields.size())
      return fail(ErrorKind::kUsage, "'{}' has fewer columns than the header",
                  line.substr(0, kQuoted));
    return map_ranks(fields[*rank_column_], fields[*host_column_]);
  }
  const bool spaced = line.find_first_of(" \t") != line.npos;
  if (spaced && fields.size() >= 2) {
    if (fields[1].find("slots=") != fields[1].npos)
      return read_slots(fields);
    if (fields.size() == 2)
      if (const auto counts = task_counts(fields[1]))
        return read_list(fields[0], *counts);
    if (fields.size() == 2 && fields[0].find('[') != fields[0].npos &&
        count_in(fields[1]))
      return read_list(fields[0], fields[1]);
  }
  if (!spaced && task_counts(line))
    return read_word(line);
  if (fields.size() == 2 && is_rank_set(fields[0]) != is_rank_set(fields[1])) {
    const bool rank_first = is_rank_set(fields[0]);
    return map_ranks(fields[rank_first ? 0 : 1], fields[rank_first ? 1 : 0]);
  }
  if (!spaced)
    return read_word(line);
  return fail(ErrorKind::kUsage,
              "'{}' is not valid: give \"host slots=8\", \"rank host\", \"host "
              "0-7\" or \"node[1-4] x8\"",
              line.substr(0, kQuoted));
}

Result<> HostMapBuilder::read_line(std::string_view line,
                                   std::uint64_t number) {
  line_ = number;
  line = without_comment(line);
  if (line.empty() || TRY(read_variable(line)))
    return {};
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.empty() || read_header(fields))
    return {};
  return read_fields(fields, line);
}

// Sets the number of ranks of every listed host.
Result<> HostMapBuilder::count_listed() {
  line_ = 0;
  const auto uncounted = static_cast<std::size_t>(std::ranges::count_if(
      listed_, [](const Listed& one) { return !one.ranks; }));
  if (uncounted == 0)
    return {};
  if (!tasks_.text.empty()) {
    line_ = tasks_.line;
    const std::vector<std::uint32_t> counts =
        TRY(expand_task_counts(tasks_.text, uncounted, limits_));
    auto count = counts.begin();
    for (Listed& one : listed_)
      if (!one.ranks)
        one.ranks = *count++;
    return {};
  }
  if (uncounted == listed_.size() && map_.hosts_.size() == listed_.size() &&
      world_size_ && *world_size_ >= listed_.size())
    return deal_evenly();
  if (list_line_ != 0) {
    line_ = list_line_;
    return fail(ErrorKind::kUsage,
                "the node list does not say how many ranks each host has: add "
                "the number, as in \"node[1-4] x8\"");
  }
  for (Listed& one : listed_)
    one.ranks = one.ranks.value_or(1);
  return {};
}

Result<> HostMapBuilder::deal_evenly() {
  if (*world_size_ % listed_.size() != 0 ||
      *world_size_ > limits_.max_listed_ranks)
    return fail(ErrorKind::kUsage,
                "{} ranks cannot be divided evenly among {} hosts: give the "
                "number for each, as in \"node1 slots=8\"",
                *world_size_, listed_.size());
  for (Listed& one : listed_)
    one.ranks = static_cast<std::uint32_t>(*world_size_ / listed_.size());
  return {};
}

Result<HostMap> HostMapBuilder::finish() {
  if (listed_.empty() && map_.places_.empty() && !nodes_.text.empty()) {
    line_ = nodes_.line;
    TRY(read_list(nodes_.text, ""));
  }
  TRY(count_listed());
  line_ = 0;
  std::uint32_t next = 0;
  for (const Listed& one : listed_) {
    TRY(add_places(next, *one.ranks, one.host));
    next += *one.ranks;
  }
  if (map_.places_.empty())
    return fail(ErrorKind::kUsage, "no hosts are listed");
  std::ranges::sort(map_.places_);
  map_.places_.erase(std::unique(map_.places_.begin(), map_.places_.end()),
                     map_.places_.end());
  for (std::size_t i = 1; i < map_.places_.size(); ++i)
    if (map_.places_[i].rank == map_.places_[i - 1].rank)
      return fail(ErrorKind::kUsage, "rank {} is on both {} and {}",
                  map_.places_[i].rank.value,
                  map_.hosts_[map_.places_[i - 1].host],
                  map_.hosts_[map_.places_[i].host]);
  map_.by_host_ = map_.places_;
  std::ranges::sort(map_.by_host_, {}, [](const HostMap::Place& place) {
    return std::pair(place.host, place.rank);
  });
  return std::move(map_);
}

Result<HostMap> read_host_map(std::string_view text,
                              std::optional<std::uint64_t> world_size,
                              const Limits& limits) {
  HostMapBuilder builder(world_size, limits);
  std::uint64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ++number;
    TRY(builder.read_line(rest.substr(0, end), number)
            .in(fmt::format("line {}", number)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Result<HostMap> map = builder.finish();
  if (builder.line() == 0)
    return map;
  return std::move(map).in(fmt::format("line {}", builder.line()));
}

std::string_view HostMap::host_of(Rank rank) const {
  const auto found = std::ranges::lower_bound(places_, rank, {}, &Place::rank);
  return found == places_.end() || found->rank != rank
             ? std::string_view()
             : std::string_view(hosts_[found->host]);
}

std::span<const HostMap::Place> HostMap::places_of(std::uint32_t host) const {
  const auto first = std::ranges::lower_bound(by_host_, host, {}, &Place::host);
  const auto last =
      std::ranges::upper_bound(first, by_host_.end(), host, {}, &Place::host);
  return {first, last};
}

std::vector<Rank> HostMap::ranks_on(std::string_view host) const {
  std::vector<Rank> ranks;
  const auto number = numbers_.find(host);
  if (number == numbers_.end())
    return ranks;
  for (const Place& place : places_of(number->second))
    ranks.push_back(place.rank);
  return ranks;
}

std::optional<Rank> HostMap::rank_at(std::string_view host,
                                     std::int32_t local) const {
  if (host.empty() && hosts_.size() != 1)
    return std::nullopt;
  const auto number = host.empty() ? numbers_.begin() : numbers_.find(host);
  if (number == numbers_.end() || local < 0)
    return std::nullopt;
  const std::span<const Place> places = places_of(number->second);
  if (static_cast<std::size_t>(local) >= places.size())
    return std::nullopt;
  return places[static_cast<std::size_t>(local)].rank;
}

}  // namespace postflight
