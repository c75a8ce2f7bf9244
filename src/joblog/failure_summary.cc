#include "joblog/failure_summary.h"

#include <charconv>

#include "base/ascii.h"

namespace postflight {
namespace {

std::int64_t number_at_front(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::int64_t process_behind(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  return at == text.npos ? 0 : number_at_front(text.substr(at + part.size()));
}

// "[0]:"
bool is_place(std::string_view text) {
  return text.size() > 3 && text.starts_with('[') && text.ends_with("]:") &&
         text.find_first_not_of("0123456789", 1) == text.size() - 2;
}

bool is_start(std::string_view text) {
  return text == "Failures:" || text.starts_with("Root Cause");
}

}  // namespace

std::optional<Rank> FailureSummaryReader::rank(std::uint64_t process) const {
  if (open_.empty())
    return std::nullopt;
  const auto found = open_.find(process);
  return found == open_.end() ? std::nullopt
                              : found->second.failure.origin.rank;
}

std::optional<WorkerFailure> FailureSummaryReader::take_field(
    Open& open, std::string_view text, const LogOrigin& origin) {
  const std::size_t colon = text.find(':');
  if (!open.in_failure || colon == text.npos)
    return std::nullopt;
  const std::string_view name = trimmed(text.substr(0, colon), kBlanks);
  std::string_view value = trimmed(text.substr(colon + 1), kBlanks);
  LogOrigin& who = open.failure.origin;
  if (name == "time") {
    who.time = take_log_time(value);
  } else if (name == "host") {
    who.host = value.substr(0, 255);
  } else if (name == "rank") {
    who.rank = leading_rank(value);
    who.rank_source = RankSource::kLine;
    const std::size_t local = value.find("local_rank: ");
    if (local != value.npos)
      who.local_rank = leading_rank(value.substr(local + 12));
  } else if (name == "exitcode") {
    open.failure.exit_code = number_at_front(value);
    open.failure.process = process_behind(value, "(pid: ");
    who.line = origin.line;
  } else if (name == "traceback" || name == "msg") {
    open.in_failure = false;
    if (value.starts_with("Signal "))
      open.failure.reason = value.substr(0, limits_.max_log_message_bytes);
    if (!who.rank || open.failure.exit_code == 0)
      return std::nullopt;
    who.order = origin.order ? origin.order : who.time;
    return open.failure;
  }
  return std::nullopt;
}

std::optional<WorkerFailure> FailureSummaryReader::take(
    const LogLine& line, const LogOrigin& origin) {
  const std::string_view text = trimmed(line.text, kBlanks);
  if (is_start(text)) {
    if (open_.size() >= limits_.max_open_tracebacks)
      open_.clear();
    Open& open = open_[line.process];
    open = {};
    open.in_root_cause = text.starts_with("Root Cause");
    return std::nullopt;
  }
  if (open_.empty())
    return std::nullopt;
  const auto found = open_.find(line.process);
  if (found == open_.end())
    return std::nullopt;
  Open& open = found->second;
  if (is_place(text)) {
    open.in_failure = true;
    open.failure = {};
    open.failure.first_cause = open.in_root_cause;
    return std::nullopt;
  }
  if (text.starts_with("=====")) {
    open_.erase(found);
    return std::nullopt;
  }
  return take_field(open, text, origin);
}

}  // namespace postflight
