#include "joblog/line.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/ascii.h"

namespace postflight {
namespace {

// No real line has more.
constexpr int kMaxPrefixes = 8;
constexpr std::size_t kMaxLabel = 7;  // digits of srun's label
constexpr std::size_t kMaxTag = 200;  // bytes of a bracketed prefix

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_';
  });
}

void skip_space(std::string_view& text) {
  if (text.starts_with(' '))
    text.remove_prefix(1);
}

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end]))
    ++end;
  return end - at;
}

// An SGR escape sequence.
bool take_colour(std::string_view& text) {
  if (!text.starts_with("\x1b["))
    return false;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  if (end == text.npos || text[end] != 'm')
    return false;
  text.remove_prefix(end + 1);
  return true;
}

// "[rank3]:" and "[default3]:"
bool take_torch(LogLine& line) {
  const std::string_view text = line.text;
  std::size_t at = 1;
  while (at < text.size() && (is_letter(text[at]) || text[at] == '_'))
    ++at;
  const std::size_t digits = digits_at(text, at);
  if (at == 1 || digits == 0 || !text.substr(at + digits).starts_with("]:"))
    return false;
  const std::optional<Rank> rank = leading_rank(text.substr(at, digits));
  if (!rank)
    return false;
  if (text.substr(1, at - 1) == "rank") {
    line.rank = rank;
    line.rank_source = RankSource::kLine;
  } else {
    line.local_rank = rank;
  }
  line.text.remove_prefix(at + digits + 2);
  skip_space(line.text);
  return true;
}

// "[1,3]<stderr>:", perhaps with the job's name before it
bool take_mpirun(LogLine& line) {
  const std::string_view front = line.text.substr(0, kMaxTag);
  const std::size_t close = front.find("]<std");
  const std::size_t end = front.find(">:", close);
  if (close == front.npos || end == front.npos)
    return false;
  const std::size_t comma = front.rfind(',', close);
  if (comma == front.npos || digits_at(front, comma + 1) != close - comma - 1)
    return false;
  const std::optional<Rank> rank = leading_rank(front.substr(comma + 1));
  if (!rank)
    return false;
  line.rank = rank;
  line.rank_source = RankSource::kLine;
  line.text.remove_prefix(end + 2);
  skip_space(line.text);
  return true;
}

// " 3: "
bool take_label(LogLine& line) {
  const std::string_view text = line.text;
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos || begin > kMaxLabel)
    return false;
  const std::size_t digits = digits_at(text, begin);
  const std::string_view behind = text.substr(begin + digits);
  if (digits == 0 || digits > kMaxLabel ||
      (!behind.starts_with(": ") && behind != ":"))
    return false;
  line.label = leading_rank(text.substr(begin));
  if (!line.rank) {
    line.rank = line.label;
    line.rank_source = RankSource::kLabel;
  }
  line.text.remove_prefix(begin + digits + 1);
  skip_space(line.text);
  return true;
}

// "(Worker pid=7, ip=10.0.0.1)"
bool take_ray(LogLine& line) {
  const std::string_view front = line.text.substr(0, kMaxTag);
  const std::size_t end = front.find(')');
  const std::size_t pid = front.find("pid=");
  if (end == front.npos || pid > end)
    return false;
  const std::string_view tag = front.substr(0, end);
  if (const std::size_t ip = tag.find("ip="); ip != tag.npos)
    line.host = tag.substr(ip + 3, tag.find(',', ip) - (ip + 3));
  line.process ^= std::hash<std::string_view>()(tag);
  line.text.remove_prefix(end + 1);
  while (take_colour(line.text)) {
  }
  skip_space(line.text);
  return true;
}

// "node1: " if a prefix follows
bool take_pdsh(LogLine& line) {
  const std::string_view front = line.text.substr(0, kMaxTag);
  const std::size_t colon = front.find(": [");
  if (colon == front.npos || !is_host(front.substr(0, colon)))
    return false;
  LogLine behind = line;
  behind.text.remove_prefix(colon + 2);
  if (!take_torch(behind))
    return false;
  behind.host = front.substr(0, colon);
  line = behind;
  return true;
}

// "node1 kernel:" or "node1 python[17]:", which follow the time in syslog
void take_syslog_host(LogLine& line) {
  const std::string_view front = line.text.substr(0, kMaxTag);
  const std::size_t space = front.find(' ');
  const std::size_t colon = front.find(": ", space);
  if (space == front.npos || colon == front.npos ||
      !is_host(front.substr(0, space)))
    return;
  const std::string_view program = front.substr(space + 1, colon - space - 1);
  if (program.empty() || program.find(' ') != program.npos)
    return;
  line.host = front.substr(0, space);
  line.text.remove_prefix(colon + 2);
}

// The forms of time that a host follows.
bool is_syslog_time(std::string_view text) {
  return text.size() > 10 &&
         (text[10] == 'T' || (is_letter(text[0]) && is_letter(text[1])));
}

bool take_time(LogLine& line) {
  if (line.time)
    return false;
  const bool syslog = is_syslog_time(line.text);
  line.time = take_log_time(line.text);
  if (line.time && syslog)
    take_syslog_host(line);
  return line.time.has_value();
}

bool take_prefix(LogLine& line) {
  if (line.text.empty())
    return false;
  switch (line.text.front()) {
    case '\x1b':
      return take_colour(line.text);
    case '[':
      return take_torch(line) || take_mpirun(line) || take_time(line);
    case '(':
      return take_ray(line);
    default:
      return (!line.label && take_label(line)) || take_time(line) ||
             (line.host.empty() && take_pdsh(line));
  }
}

}  // namespace

std::optional<Rank> leading_rank(std::string_view text) {
  std::int32_t value = 0;
  const char* const end = text.data() + digits_at(text, 0);
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end)
    return std::nullopt;
  return Rank{value};
}

LogLine read_log_line(std::string_view text) {
  LogLine line;
  line.text = text;
  for (int i = 0; i < kMaxPrefixes && take_prefix(line); ++i) {
  }
  const auto mix = [&](std::uint64_t value) {
    line.process = (line.process ^ value) * 0x9e3779b97f4a7c15;
    line.process ^= line.process >> 32;
  };
  mix(static_cast<std::uint64_t>(line.rank.value_or(Rank{-1}).value));
  mix(static_cast<std::uint64_t>(line.label.value_or(Rank{-1}).value));
  mix(static_cast<std::uint64_t>(line.local_rank.value_or(Rank{-1}).value));
  mix(line.host.empty() ? 0 : std::hash<std::string_view>()(line.host));
  return line;
}

}  // namespace postflight
