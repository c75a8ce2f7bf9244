#include "joblog/fold.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

using enum LogEventKind;

bool is_hexadecimal(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

// Whether events that differ in their number only are the same.
bool number_is_passing(LogEventKind kind, std::string_view before) {
  switch (kind) {
    case kCollectiveTimeout:
      return before.ends_with("ran for ");
    // How far each came is what matters.
    case kWatchdog:
      return !before.ends_with("work: ") && !before.ends_with("id: ");
    case kKilled:
    case kWorkerFailed:
      return before.ends_with("PID ") || before.ends_with("pid: ") ||
             before.ends_with("pid ") || before.ends_with("rank: ") ||
             before.ends_with("rank ") || before.ends_with("Process ") ||
             before.ends_with(": task ");
    case kXid:
    case kCancelled:
      return false;
    default:
      return true;
  }
}

bool is_later(const std::optional<LogTime>& a,
              const std::optional<LogTime>& b) {
  return a && (!b ||
               (a->has_year == b->has_year && a->nanoseconds > b->nanoseconds));
}

// What the lines of one event have in common.
std::string identity_of(const LogEvent& event) {
  std::string identity(1, static_cast<char>(event.kind));
  identity += event.first_cause ? '1' : '0';
  identity += event.of_earlier_attempt ? '1' : '0';
  identity += fmt::format("{}", event.attempt);
  identity += event.frame;
  identity += '\0';
  std::string_view message = event.message;
  if (event.kind == kXid || event.kind == kHostOutOfMemory) {
    identity += event.host;
    identity += '\0';
  }
  // "Xid (PCI:0000:3b:00): 79" says which GPU and what; the rest is detail.
  if (event.kind == kXid && event.number)
    message = message.substr(0, message.find(','));
  for (std::size_t i = 0; i < message.size();) {
    const bool inside = i > 0 && is_digit(message[i - 1]);
    if (!is_digit(message[i]) || inside ||
        !number_is_passing(event.kind, message.substr(0, i))) {
      identity += message[i++];
      continue;
    }
    const bool hexadecimal = message.substr(i).starts_with("0x");
    i += hexadecimal ? 2 : 0;
    while (i < message.size() &&
           (hexadecimal ? is_hexadecimal(message[i]) : is_digit(message[i])))
      ++i;
    identity += '#';
  }
  return identity;
}

}  // namespace

void RankBag::add(Rank rank) {
  if (!ranks_.empty() && ranks_.back() == rank)
    return;
  ranks_.push_back(rank);
  if (ranks_.size() >= 2 * tidied_)
    tidy();
}

void RankBag::tidy() {
  std::ranges::sort(ranks_);
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  tidied_ = std::max<std::size_t>(ranks_.size(), 32);
}

std::vector<Rank> RankBag::sorted() {
  tidy();
  return ranks_;
}

bool comes_before(const FoldedEvent& a, const FoldedEvent& b) {
  const auto key = [](const FoldedEvent& one) {
    return std::tuple(!one.order, one.order ? one.order->nanoseconds : 0,
                      one.file, one.event.line);
  };
  return key(a) < key(b);
}

void LogFold::add(const LogEvent& event, std::optional<LogTime> order,
                  std::size_t file, RankSource source,
                  std::span<const Rank> ranks) {
  const auto [place, is_new] =
      places_.try_emplace(identity_of(event), events_.size());
  if (is_new) {
    std::uint64_t& of_kind = kinds_[static_cast<std::size_t>(event.kind)];
    if (of_kind >= limits_.max_log_events) {
      places_.erase(place);
      dropped_ += event.count;
      return;
    }
    ++of_kind;
    events_.push_back({event, order, file, source, {}, false});
  }
  FoldedEvent& folded = events_[place->second];
  if (!is_new) {
    const std::uint64_t count = folded.event.count + event.count;
    const std::optional<LogTime> last = is_later(event.last, folded.event.last)
                                            ? event.last
                                            : folded.event.last;
    const FoldedEvent other{event, order, file, source, {}, false};
    const bool comparable =
        !folded.order || !order || folded.order->has_year == order->has_year;
    if (comparable && comes_before(other, folded)) {
      folded.event = event;
      folded.order = order;
      folded.file = file;
      folded.rank_source = source;
    }
    folded.event.count = count;
    folded.event.last = last;
  }
  folded.unattributed = folded.unattributed || source <= RankSource::kGroup;
  // Otherwise a log could fill memory with made-up ranks.
  ranks_ += ranks.size();
  if (ranks_ > limits_.max_log_event_ranks)
    return;
  for (const Rank rank : ranks)
    folded.ranks[static_cast<std::size_t>(source)].add(rank);
}

}  // namespace postflight
