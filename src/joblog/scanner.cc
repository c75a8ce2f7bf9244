#include "joblog/scanner.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "flight/model/entry.h"

namespace postflight {
namespace {

using enum LogEventKind;

// The start of a text, without escape sequences for colours and spaces in a
// row.
std::string message_of(std::string_view text, const Limits& limits) {
  std::string message;
  for (std::size_t i = 0;
       i < text.size() && message.size() < limits.max_log_message_bytes; ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      const std::size_t end = text.find_first_not_of("0123456789;", i + 2);
      if (end != text.npos && text[end] == 'm') {
        i = end;
        continue;
      }
    }
    if (text[i] != ' ' || !message.ends_with(' '))
      message += text[i];
  }
  return message;
}

// "[E1115 13:05:06.1 ProcessGroupNCCL.cpp:607] ", where a progress bar
// before it has left the time in the middle of the line.
std::optional<LogTime> time_inside(std::string_view before) {
  constexpr std::size_t kFar = 200;
  if (before.size() > kFar)
    before.remove_prefix(before.size() - kFar);
  for (std::size_t at = before.find('['); at != before.npos;
       at = before.find('[', at + 1)) {
    std::string_view text = before.substr(at);
    if (const std::optional<LogTime> time = take_log_time(text))
      return time;
  }
  return std::nullopt;
}

// The text of a JSON string that begins here, up to `most` bytes.
std::string json_text(std::string_view text, std::size_t most) {
  std::string found;
  for (std::size_t i = 0; i < text.size() && found.size() < most; ++i) {
    if (text[i] == '"')
      break;
    if (text[i] != '\\' || i + 1 == text.size()) {
      found += text[i];
      continue;
    }
    const char escaped = text[++i];
    found += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
  }
  return found;
}

LogEventKind kind_of_exit(std::int64_t code) {
  constexpr std::int64_t kIllegal = -4;
  constexpr std::int64_t kBus = -7;
  constexpr std::int64_t kKill = -9;
  constexpr std::int64_t kSegmentation = -11;
  if (code == kIllegal || code == kBus || code == kSegmentation)
    return kCrash;
  return code == kKill ? kKilled : kWorkerFailed;
}

std::vector<Rank> expanded(const std::vector<TaskRange>& tasks,
                           std::uint64_t most) {
  std::vector<Rank> ranks;
  for (const TaskRange& range : tasks)
    for (std::int64_t task = range.first.value;
         task <= range.last.value && ranks.size() < most; ++task)
      ranks.push_back({static_cast<std::int32_t>(task)});
  return ranks;
}

bool is_launcher(std::string_view exception) {
  return exception.substr(0, exception.find(':')).ends_with("ChildFailedError");
}

}  // namespace

void LogScanner::note_time(LogTime time) {
  last_time_ = time;
  if (!first_time_)
    first_time_ = time;
  if (time.has_year && !full_time_)
    full_time_ = time;
}

void LogScanner::note(const LogLine& line) {
  if (line.time)
    note_time(*line.time);
  hear(line);
  // One task per node, which runs torchrun.
  if (line.local_rank)
    tasks_are_nodes_ = true;
  if (line.label && labels_.size() < max_log_progress(limits_))
    labels_.add(*line.label);
  if (line.rank_source != RankSource::kLine)
    return;
  if (speakers_.size() < max_log_progress(limits_))
    speakers_.add(*line.rank);
  if (line.label && line.label != line.rank)
    tasks_are_nodes_ = true;
  only_rank_ = has_ranks_ && only_rank_ != line.rank ? std::nullopt : line.rank;
  has_ranks_ = true;
}

// When each rank wrote last. A rank that goes on has not ended.
void LogScanner::hear(const LogLine& line) {
  if (!last_time_)
    return;
  if (!line.rank) {
    heard_without_rank_ = last_time_;
    return;
  }
  if (heard_.size() < max_log_progress(limits_) || heard_.contains(*line.rank))
    heard_[*line.rank] = {*last_time_, line.rank_source};
}

std::vector<Rank> LogScanner::speakers() {
  std::vector<Rank> ranks = speakers_.sorted();
  if (!tasks_are_nodes_)
    std::ranges::copy(labels_.sorted(), std::back_inserter(ranks));
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void LogScanner::add(LogEvent event, const LogOrigin& origin,
                     std::vector<Rank> ranks) {
  event.rank = origin.rank;
  event.local_rank = origin.local_rank;
  event.task = origin.task;
  event.host = origin.host;
  event.time = origin.time;
  event.last = origin.order;
  event.attempt = attempt_;
  event.line = origin.line;
  if (ranks.empty() && origin.rank)
    ranks.push_back(*origin.rank);
  fold_.add(event, origin.order, 0, origin.rank_source, ranks);
}

void LogScanner::add_match(const LogMatch& match, const LogLine& line,
                           LogOrigin origin) {
  LogEvent event;
  event.kind = match.kind;
  event.message = message_of(match.message, limits_);
  event.number = match.number;
  if (!origin.time) {
    origin.time = time_inside(line.text.substr(0, match.at));
    if (origin.time)
      origin.order = origin.time;
  }
  if (match.kind == kWorkerFailed && match.number)
    event.kind = kind_of_exit(*match.number);
  if (!match.host.empty())
    origin.host = match.host.substr(0, 255);
  if (match.rank) {
    origin.rank = match.rank;
    origin.rank_source = RankSource::kLine;
  } else if (!match.tasks.empty()) {
    origin.rank = match.tasks[0].first;
    origin.rank_source = RankSource::kLabel;
  } else if (!origin.rank && match.group_rank) {
    origin.rank = match.group_rank;
    origin.rank_source = RankSource::kGroup;
  }
  if (match.local_rank) {
    // A launcher reports on one of its processes; it has no rank itself.
    origin.rank.reset();
    origin.rank_source = RankSource::kNone;
    origin.local_rank = match.local_rank;
    if (match.process && ended_.size() < limits_.max_log_events) {
      ended_.push_back({std::move(event), std::move(origin), *match.process});
      return;
    }
  }
  add(std::move(event), origin, expanded(match.tasks, fold_.ranks_left()));
}

void LogScanner::add_failure(const WorkerFailure& failure) {
  LogEvent event;
  event.kind = kind_of_exit(failure.exit_code);
  event.number = failure.exit_code;
  event.first_cause = failure.first_cause;
  event.message = failure.reason.empty()
                      ? fmt::format("exit code {} (pid {})", failure.exit_code,
                                    failure.process)
                      : failure.reason;
  tasks_are_nodes_ = true;
  // The list is printed at the very end, so its times do not apply to later
  // lines.
  if (failure.origin.time && !last_time_)
    note_time(*failure.origin.time);
  if (summarised_.size() < limits_.max_log_event_ranks)
    summarised_.insert(failure.process);
  add(std::move(event), failure.origin);
}

void LogScanner::add_tracebacks() {
  for (Traceback& traceback : tracebacks_.take_ended()) {
    // The launcher's own traceback is covered by its summary.
    if (is_launcher(traceback.exception)) {
      tasks_are_nodes_ = true;
      continue;
    }
    LogEvent event;
    event.kind = kTraceback;
    if (const auto match = match_log_text(traceback.exception)) {
      event.kind = match->kind;
      event.number = match->number;
      if (!traceback.origin.rank && match->group_rank) {
        traceback.origin.rank = match->group_rank;
        traceback.origin.rank_source = RankSource::kGroup;
      }
    }
    event.message = message_of(traceback.exception, limits_);
    if (traceback.exception.empty())
      event.message = "the log ends inside a traceback";
    else if (!traceback.cause.empty())
      event.message += fmt::format(" (it began with {})",
                                   message_of(traceback.cause, limits_));
    event.frame = std::move(traceback.frame);
    add(std::move(event), traceback.origin);
  }
}

// The error.json that torchrun keeps of a process:
// {"message": {"message": "KeyError: 'x'", "extraInfo": {"py_callstack":
// "Traceback (most recent call last):\n...", "timestamp": "1794726000"}}}
bool LogScanner::take_error_file(std::string_view text, std::uint64_t number) {
  constexpr std::string_view kFront = "{\"message\": {\"message\": \"";
  if (!text.starts_with(kFront))
    return false;
  LogOrigin origin;
  origin.line = number;
  const auto behind = [&](std::string_view key) {
    const std::size_t at = text.find(key);
    return at == text.npos ? std::string_view() : text.substr(at + key.size());
  };
  std::int64_t seconds = 0;
  const std::string_view stamp = behind("\"timestamp\": \"");
  std::from_chars(stamp.data(), stamp.data() + stamp.size(), seconds);
  constexpr std::int64_t kMost = 4'000'000'000;
  if (seconds > 0 && seconds < kMost) {
    origin.time = LogTime{seconds * kNanosecondsPerSecond, true};
    origin.order = origin.time;
    note_time(*origin.time);
  }
  LogLine line;
  const std::string stack =
      json_text(behind("\"py_callstack\": \""), limits_.max_log_line_bytes);
  for (std::string_view rest = stack; !rest.empty();) {
    line.text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.text.size() + 1, rest.size()));
    tracebacks_.take(line, origin);
  }
  tracebacks_.finish();
  add_tracebacks();
  if (stack.empty()) {
    LogEvent event;
    event.kind = kTraceback;
    event.message = message_of(
        json_text(text.substr(kFront.size()), limits_.max_log_message_bytes),
        limits_);
    add(std::move(event), origin);
  }
  return true;
}

// "Worker group FAILED. 2/3 attempts left; will restart worker group"
void LogScanner::note_restart(std::string_view text) {
  if (text.find(" attempts left; will restart worker group") == text.npos)
    return;
  finish_attempt();
  ++attempt_;
  restarted_ = last_time_;
  progress_.forget();
}

void LogScanner::take(std::string_view text, std::uint64_t number) {
  if (number == 1 && take_error_file(text, number))
    return;
  LogLine line = read_log_line(text);
  note(line);
  note_restart(line.text);
  LogOrigin origin;
  origin.rank = line.rank;
  origin.rank_source = line.rank_source;
  origin.local_rank = line.local_rank;
  origin.task = line.label;
  origin.host = line.host.substr(0, 255);
  origin.time = line.time;
  origin.order = last_time_;
  origin.line = number;
  if (const auto failure = summaries_.take(line, origin)) {
    add_failure(*failure);
  }
  if (const std::optional<Rank> rank = summaries_.rank(line.process)) {
    origin.rank = rank;
    origin.rank_source = RankSource::kLine;
  }
  progress_.take(line, origin);
  const bool taken = tracebacks_.take(line, origin);
  add_tracebacks();
  if (taken)
    return;
  const std::optional<LogMatch> match = match_log_text(line.text);
  // The reasons in a summary were added with their failures.
  if (match && !(match->kind == kKilled && match->process &&
                 summarised_.contains(*match->process)))
    add_match(*match, line, std::move(origin));
}

void LogScanner::finish_attempt() {
  tracebacks_.finish();
  add_tracebacks();
  for (Ended& ended : ended_)
    if (!summarised_.contains(ended.process))
      add(std::move(ended.event), ended.origin);
  ended_.clear();
}

void LogScanner::finish() {
  finish_attempt();
  progress_.finish();
  // Lines before the first with a time precede it.
  for (FoldedEvent& folded : fold_.events())
    if (!folded.order)
      folded.order = folded.event.last = first_time_;
  for (FoldedEvent& folded : fold_.events())
    folded.event.of_earlier_attempt = folded.event.attempt < attempt_;
}

}  // namespace postflight
