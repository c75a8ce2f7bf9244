#include "joblog/node_list.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

// More digits than any node's number has.
constexpr std::size_t kMaxDigits = 18;
// The limit of DNS.
constexpr std::size_t kMaxHostName = 255;

std::optional<std::uint64_t> host_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || text.size() > kMaxDigits)
    return std::nullopt;
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end)
    return std::nullopt;
  return value;
}

// first-last in a bracket, padded to `width` digits.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 0;
};

// A part of a name: literal text or a bracket.
struct Part {
  std::string_view text;
  std::vector<Range> ranges;  // empty: literal

  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const Range& range : ranges)
      sum += range.last - range.first + 1;
    return ranges.empty() ? 1 : sum;
  }
};

tl::unexpected<Error> too_many_hosts(std::string_view list,
                                     const Limits& limits) {
  return fail(ErrorKind::kRefused,
              "'{}' brings the list to more than {} hosts, the most allowed",
              list.substr(0, 80), limits.max_listed_hosts);
}

Result<Range> read_range(std::string_view item, std::string_view name) {
  const std::size_t dash = item.find('-');
  const std::string_view low = item.substr(0, dash);
  const std::string_view high = dash == item.npos ? low : item.substr(dash + 1);
  const std::optional<std::uint64_t> first = host_number(low);
  const std::optional<std::uint64_t> last = host_number(high);
  if (!first || !last)
    return fail(ErrorKind::kUsage,
                "'{}' in the node list '{}' is neither a number nor a range",
                item.substr(0, 80), name.substr(0, 80));
  if (*last < *first)
    return fail(ErrorKind::kUsage,
                "the range '{}' in the node list '{}' ends before it begins",
                item, name.substr(0, 80));
  return Range{*first, *last, low.size()};
}

Result<std::vector<Part>> read_parts(std::string_view name,
                                     const Limits& limits) {
  std::vector<Part> parts;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t open = rest.find('[');
    const std::string_view text = rest.substr(0, open);
    if (text.find(']') != text.npos)
      return fail(ErrorKind::kUsage, "the node list '{}' has a ] without a [",
                  name.substr(0, 80));
    if (!text.empty())
      parts.push_back({text, {}});
    if (open == rest.npos)
      break;
    const std::size_t close = rest.find(']', open);
    if (close == rest.npos)
      return fail(ErrorKind::kUsage, "the node list '{}' has a [ without a ]",
                  name.substr(0, 80));
    Part part;
    std::uint64_t hosts = 0;
    std::string_view inside = rest.substr(open + 1, close - open - 1);
    do {
      const Range range = TRY(read_range(take_list_item(inside), name));
      hosts += range.last - range.first + 1;
      if (hosts > limits.max_listed_hosts)
        return too_many_hosts(name, limits);
      part.ranges.push_back(range);
    } while (!inside.empty());
    parts.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
  return parts;
}

// What a bracket expands to, or the literal text.
std::vector<std::string> texts_of(const Part& part) {
  if (part.ranges.empty())
    return {std::string(part.text)};
  std::vector<std::string> texts;
  for (const Range& range : part.ranges)
    for (std::uint64_t n = range.first; n <= range.last; ++n)
      texts.push_back(fmt::format("{:0{}}", n, range.width));
  return texts;
}

Result<> expand_name(std::string_view name, const Limits& limits,
                     std::vector<std::string>& hosts) {
  const std::vector<Part> parts = TRY(read_parts(name, limits));
  std::uint64_t count = 1;
  for (const Part& part : parts) {
    // Both factors are at most max_listed_hosts, so this cannot overflow for
    // any sensible limit.
    count *= part.count();
    if (count > limits.max_listed_hosts - hosts.size())
      return too_many_hosts(name, limits);
  }
  std::vector<std::string> names = {""};
  for (const Part& part : parts) {
    std::vector<std::string> longer;
    const std::vector<std::string> texts = texts_of(part);
    longer.reserve(names.size() * texts.size());
    for (const std::string& front : names)
      for (const std::string& text : texts)
        longer.push_back(front + text);
    names = std::move(longer);
    if (names.front().size() > kMaxHostName)
      return fail(ErrorKind::kUsage,
                  "the host name '{}...' is longer than {} bytes",
                  names.front().substr(0, 80), kMaxHostName);
  }
  std::ranges::move(names, std::back_inserter(hosts));
  return {};
}

}  // namespace

std::string_view take_list_item(std::string_view& list) {
  std::size_t at = 0;
  bool inside = false;
  for (; at < list.size(); ++at) {
    if (list[at] == ',' && !inside)
      break;
    if (list[at] == '[')
      inside = true;
    else if (list[at] == ']')
      inside = false;
  }
  const std::string_view item = trimmed(list.substr(0, at));
  list.remove_prefix(std::min(at + 1, list.size()));
  return item;
}

Result<std::vector<std::string>> expand_node_list(std::string_view list,
                                                  const Limits& limits) {
  std::vector<std::string> hosts;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view name = take_list_item(rest);
    if (name.empty())
      return fail(ErrorKind::kUsage, "the node list '{}' has an empty item",
                  list.substr(0, 80));
    TRY(expand_name(name, limits, hosts));
  }
  return hosts;
}

Result<std::vector<std::uint32_t>> expand_task_counts(std::string_view text,
                                                      std::size_t hosts,
                                                      const Limits& limits) {
  std::vector<std::uint32_t> counts;
  std::uint64_t sum = 0;
  bool single = true;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = take_list_item(rest);
    const std::size_t open = item.find("(x");
    const std::optional<std::uint64_t> tasks =
        host_number(item.substr(0, open));
    std::optional<std::uint64_t> times = 1;
    if (open != item.npos) {
      times = item.ends_with(')')
                  ? host_number(item.substr(open + 2, item.size() - open - 3))
                  : std::nullopt;
      single = false;
    }
    if (!tasks || !times || *times == 0)
      return fail(ErrorKind::kUsage,
                  "'{}' is not a valid number of tasks per node: give 8 or "
                  "8(x4),2",
                  item.substr(0, 80));
    // A single number applies to every host.
    if (single && counts.empty() && rest.empty())
      times = hosts;
    if (*times > hosts - counts.size())
      return fail(ErrorKind::kUsage,
                  "the tasks per node '{}' are for more than the {} hosts "
                  "listed",
                  text.substr(0, 80), hosts);
    if (*tasks > limits.max_listed_ranks ||
        (sum += *tasks * *times) > limits.max_listed_ranks)
      return fail(ErrorKind::kRefused,
                  "the tasks per node '{}' add up to more than {} ranks, the "
                  "most allowed",
                  text.substr(0, 80), limits.max_listed_ranks);
    counts.insert(counts.end(), *times, static_cast<std::uint32_t>(*tasks));
  }
  if (counts.size() != hosts)
    return fail(ErrorKind::kUsage,
                "the tasks per node '{}' are for {} of the {} hosts listed",
                text.substr(0, 80), counts.size(), hosts);
  return counts;
}

}  // namespace postflight
