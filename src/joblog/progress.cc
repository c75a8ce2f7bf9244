#include "joblog/progress.h"

#include "base/ascii.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace postflight {
namespace {

// Nothing that a job says at its end is further apart. What is older is of an
// earlier attempt of a job that was started again.
constexpr std::int64_t kOneSilence = std::int64_t{30} * 60 * 1'000'000'000;

bool is_of_another_attempt(const std::optional<LogTime>& before,
                           const std::optional<LogTime>& now) {
  return before && now && before->has_year == now->has_year &&
         now->nanoseconds - before->nanoseconds > kOneSilence;
}

LogProgress::Operation operation_of(const LoggedOperation& logged) {
  constexpr std::size_t kLongestName = 64;
  return {.sequence = logged.sequence,
          .type = std::string(logged.type.substr(0, kLongestName)),
          .inputs = logged.inputs,
          .outputs = logged.outputs,
          .dtype = std::string(logged.dtype.substr(0, kLongestName)),
          .timeout_ms = logged.timeout_ms};
}

}  // namespace

std::size_t ProgressTable::KeyHash::operator()(const Key& key) const {
  const auto& [process, place, group, description] = key;
  std::size_t hash = process * 0x9e3779b97f4a7c15;
  hash ^= static_cast<std::size_t>(place) + (hash << 6);
  hash ^= std::hash<std::string>()(group) + (hash << 6);
  return hash ^ (std::hash<std::string>()(description) + (hash >> 2));
}

std::string ProgressTable::shortened(std::string_view text) const {
  // Without the source file before a status, and the explanation behind it.
  text = text.substr(0, text.find("This is most likely"));
  if (const std::size_t source = text.find(".cpp:"); source != text.npos)
    if (const std::size_t end = text.find("] ", source); end != text.npos)
      text.remove_prefix(end + 2);
  std::string kept;
  for (const char c :
       trimmed(text, kBlanks).substr(0, limits_.max_log_message_bytes))
    if (c != ' ' || !kept.ends_with(' '))
      kept += c;
  return kept;
}

ProgressTable::Said* ProgressTable::find_or_add(std::uint64_t process,
                                                const LogProgress& progress,
                                                const LogOrigin& origin) {
  const auto [found, is_new] = places_.try_emplace(
      Key{process, progress.place.value_or(Rank{-1}).value,
          progress.named ? progress.group : "?",
          // Without a group, the operation is the key.
          progress.named || !progress.pending
              ? progress.description
              : fmt::format("{} {} {}", progress.pending->sequence,
                            progress.pending->type, progress.pending->inputs)},
      said_.size());
  if (!is_new) {
    Said& said = said_[found->second];
    if (is_of_another_attempt(said.origin.time, origin.time))
      said = {progress, origin};
    return &said;
  }
  if (said_.size() >= max_log_progress(limits_)) {
    places_.erase(found);
    ++dropped_;
    return nullptr;
  }
  said_.push_back({progress, origin});
  processes_.push_back(process);
  return &said_.back();
}

void ProgressTable::note(const ProgressLine& found, const LogLine& line,
                         const LogOrigin& origin) {
  constexpr std::size_t kLongestName = 200;
  LogProgress progress;
  progress.named = found.named;
  progress.group = found.group.substr(0, kLongestName);
  progress.description = found.description.substr(0, kLongestName);
  progress.place = found.place;
  if (!found.named && found.timed_out)
    progress.pending = operation_of(*found.timed_out);
  Said* const said = find_or_add(line.process, progress, origin);
  if (said == nullptr)
    return;
  LogProgress& known = said->progress;
  // A group that is made again is that of another attempt.
  if (found.members && (known.timed_out || known.enqueued))
    known = progress;
  if (found.rank && said->origin.rank_source != RankSource::kLine) {
    said->origin.rank = found.rank;
    said->origin.rank_source = RankSource::kLine;
  }
  if (found.members)
    known.members = found.members;
  if (found.timed_out && !known.timed_out) {
    known.pending = operation_of(*found.timed_out);
    known.timed_out = true;
  }
  if (found.failed)
    known.failed = found.failed;
  if (found.enqueued) {
    known.enqueued = found.enqueued;
    known.started = found.started;
    known.completed = found.completed;
  }
  if (found.timed_out || known.line == 0 ||
      (found.enqueued && !known.timed_out)) {
    known.line = origin.line;
    known.text = shortened(line.text);
  }
  said->origin.time = origin.time ? origin.time : said->origin.time;
}

// What was called under one number, in a group that is not named. Each line has
// what its writer called, and what another one did, whose place in the group is
// all that is known; so a line is of its writer if that is known.
void ProgressTable::note_calls(const std::vector<LoggedCall>& calls,
                               const LogLine& line, const LogOrigin& origin) {
  LogOrigin nobody;
  nobody.time = origin.time;
  nobody.order = origin.order;
  nobody.line = origin.line;
  const bool known_writer = origin.rank_source == RankSource::kLine ||
                            origin.rank_source == RankSource::kLabel;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const LoggedCall& call = calls[i];
    const bool own = i == 0 && known_writer;
    LogProgress progress;
    progress.named = true;
    progress.group = own ? "fingerprint" : "fingerprint of another";
    progress.description = "default_pg";
    progress.place = call.place;
    Said* const said =
        find_or_add(own ? line.process : 0, progress, own ? origin : nobody);
    if (said == nullptr)
      return;
    LogProgress& known = said->progress;
    const bool better = !known.pending || known.pending->inputs < 0;
    if (better) {
      known.pending = operation_of(call.operation);
      if (known.pending->inputs < 0)
        known.pending->sequence = calls[0].operation.sequence;
    }
    known.fingerprint = true;
    known.line = origin.line;
    known.text = shortened(line.text);
  }
}

void ProgressTable::take(const LogLine& line, const LogOrigin& origin) {
  if (const auto size = read_world_size(line.text))
    world_size_ = std::max(world_size_.value_or(0), *size);
  if (const auto found = read_progress_line(line.text)) {
    note(*found, line, origin);
    return;
  }
  const std::vector<LoggedCall> calls = read_fingerprints(line.text);
  if (!calls.empty()) {
    note_calls(calls, line, origin);
    return;
  }
  if (std::optional<LoggedClaim> claim = read_claim(line.text))
    note_claim(*std::move(claim), line, origin);
}

void ProgressTable::note_claim(LoggedClaim claim, const LogLine& line,
                               const LogOrigin& origin) {
  using enum LoggedClaim::Kind;
  const auto own = std::ranges::find(claims_.rbegin(), claims_.rend(),
                                     line.process, &Claimed::process);
  if (claim.kind == kReporter) {
    if (reporters_.size() < limits_.max_log_events)
      reporters_[line.process] = claim.places[0];
    return;
  }
  if (claim.kind == kSnapshot) {
    if (own != claims_.rend())
      own->claim.highest =
          std::max(own->claim.highest.value_or(Rank{-1}), claim.places.back());
    return;
  }
  if (claims_.size() >= max_log_progress(limits_))
    return;
  std::optional<Rank> place;
  if (claim.kind == kBarrier)
    place = Rank{0};
  else if (claim.kind == kReached)
    place = claim.places[0];
  else if (const auto found = reporters_.find(line.process);
           found != reporters_.end())
    place = found->second;
  claims_.push_back({.claim = {.kind = claim.kind,
                               .places = std::move(claim.places),
                               .place = place,
                               .highest = {},
                               .sequence = claim.sequence,
                               .rank = {},
                               .time = origin.order,
                               .file = {},
                               .line = origin.line,
                               .text = shortened(line.text)},
                     .origin = origin,
                     .process = line.process});
}

void ProgressTable::forget() {
  said_.clear();
  processes_.clear();
  places_.clear();
  claims_.clear();
  reporters_.clear();
}

// A watchdog says first what timed out, without its group, and then how far it
// came in which group. The number and the rank in the group join them, unless
// different operations of two groups have both in common.
void ProgressTable::finish() {
  using Failure = std::tuple<std::uint64_t, Rank, std::int64_t>;
  struct Side {
    std::vector<std::size_t> named;
    std::vector<std::size_t> unnamed;
  };
  std::map<Failure, Side> failures;
  for (std::size_t i = 0; i < said_.size(); ++i) {
    LogProgress& one = said_[i].progress;
    const Rank place = one.place.value_or(Rank{-1});
    if (one.named && one.failed) {
      one.timed_out = true;
      failures[{processes_[i], place, *one.failed}].named.push_back(i);
    } else if (!one.named && one.pending) {
      failures[{processes_[i], place, one.pending->sequence}].unnamed.push_back(
          i);
    }
  }
  std::vector<char> joined(said_.size(), 0);
  for (const auto& [failure, side] : failures) {
    if (side.named.empty() || side.unnamed.empty())
      continue;
    for (const std::size_t place : side.unnamed)
      joined[place] = 1;
    if (side.unnamed.size() > 1)
      continue;
    const LogProgress& own = said_[side.unnamed[0]].progress;
    for (const std::size_t place : side.named) {
      LogProgress& other = said_[place].progress;
      if (other.pending)
        continue;
      other.pending = own.pending;
      other.line = own.line;
      other.text = own.text;
    }
  }
  std::size_t at = 0;
  std::erase_if(said_, [&](const Said&) { return joined[at++] != 0; });
}

}  // namespace postflight
