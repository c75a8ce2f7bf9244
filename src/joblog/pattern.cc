#include "joblog/pattern.h"

#include "base/ascii.h"
#include "joblog/line.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>

namespace postflight {
namespace {

using enum LogEventKind;

// A phrase that marks an event, and the function that reads the line around it
// and returns false if it means something else.
struct Word {
  std::string_view text;
  LogEventKind kind;
  bool (*read)(std::string_view text, LogMatch& match);
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::optional<std::int64_t> number_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  if (at >= text.size())
    return std::nullopt;
  const auto [last, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_behind(std::string_view text,
                                          std::string_view part) {
  const std::size_t at = text.find(part);
  return at == text.npos ? std::nullopt : number_at(text, at + part.size());
}

std::optional<Rank> rank_behind(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  return at == text.npos ? std::nullopt
                         : leading_rank(text.substr(at + part.size()));
}

// "[Rank 3]", "[PG 0 Rank 3]" or "[PG ID 0 PG GUID 0(default_pg) Rank 3]"
// before a message. In other groups the number is the rank in that group.
std::optional<Rank> rank_in_brackets(std::string_view before) {
  constexpr std::size_t kFar = 200;
  if (before.size() > kFar)
    before.remove_prefix(before.size() - kFar);
  for (std::size_t end = before.rfind(']'); end != before.npos;
       end = end == 0 ? before.npos : before.rfind(']', end - 1)) {
    const std::string_view front = before.substr(0, end);
    const std::size_t at = front.rfind("Rank ");
    const std::size_t open = front.rfind('[');
    if (at == front.npos || open == front.npos)
      return std::nullopt;
    if (at < open)
      continue;
    const std::string_view group = front.substr(open + 1, at - open - 1);
    if (!group.empty() && !has(group, "default_pg") && group != "PG 0 " &&
        !group.starts_with("PG ID 0 "))
      return std::nullopt;
    return leading_rank(front.substr(at + 5));
  }
  return std::nullopt;
}

bool read_from_word(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  match.group_rank = rank_in_brackets(text.substr(0, match.at));
  return true;
}

// Without the explanation that follows.
bool read_dump_signal(std::string_view text, LogMatch& match) {
  read_from_word(text, match);
  match.message = match.message.substr(0, match.message.find("This is most"));
  return true;
}

bool read_whole(std::string_view text, LogMatch& match) {
  match.message = text;
  return true;
}

bool read_timeout(std::string_view text, LogMatch& match) {
  match.number = number_behind(text.substr(match.at), "SeqNum=");
  return read_from_word(text, match);
}

bool read_stuck(std::string_view text, LogMatch& match) {
  const std::size_t start = text.rfind("ProcessGroup", match.at);
  if (start != text.npos)
    match.at = start;
  return read_from_word(text, match);
}

// "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms"
bool read_barrier(std::string_view text, LogMatch& match) {
  const std::size_t start = text.find("Rank");
  match.message = start < match.at ? text.substr(start) : text;
  if (match.message.starts_with("Rank 0]: "))
    match.message.remove_prefix(9);
  match.group_rank = rank_in_brackets(text.substr(0, match.at));
  return true;
}

bool read_gloo(std::string_view text, LogMatch& match) {
  const std::size_t start = text.find("Timed out waiting ");
  if (start > match.at)
    return false;
  match.message = text.substr(start);
  return true;
}

// "node1:17:23 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : ..."
bool read_nccl(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  std::string_view before = text.substr(0, match.at);
  before = before.substr(0, before.find(' '));
  const std::size_t colon = before.find(':');
  if (colon != before.npos && number_at(before, colon + 1) &&
      has(before.substr(colon + 1), ":"))
    match.host = before.substr(0, colon);
  return true;
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=17, GPU has fallen off the bus."
bool read_xid(std::string_view text, LogMatch& match) {
  const bool of_a_switch = match.at > 0 && text[match.at - 1] == 'S';
  match.message = text.substr(match.at - (of_a_switch ? 1 : 0));
  match.number = number_behind(match.message, "): ");
  match.process = number_behind(match.message, "pid=");
  return match.number.has_value();
}

bool read_bus(std::string_view text, LogMatch& match) {
  match.message = text;
  return has(text, "NVRM") || has(text, "NVIDIA") || has(text, "GPU");
}

bool read_killed_process(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  match.process = number_behind(match.message, " process ");
  return true;
}

// "Indexing.cu:1292: f: block: [0,0,0], thread: [1,0,0] Assertion `x` failed."
bool read_assertion(std::string_view text, LogMatch& match) {
  match.message = text;
  return has(text, "thread: [") && has(text, "failed");
}

// "failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: python"
bool read_elastic(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  match.number = number_behind(match.message, "exitcode: ");
  match.local_rank = rank_behind(match.message, "local_rank: ");
  match.process = number_behind(match.message, "(pid: ");
  return match.number.has_value();
}

// "mpirun noticed that process rank 3 with PID 17 on node n1 exited on signal
// 9"
bool read_mpirun(std::string_view text, LogMatch& match) {
  const std::size_t start = text.rfind(' ', match.at - (match.at > 0));
  match.message = start == text.npos ? text : text.substr(start + 1);
  match.rank = rank_behind(text, "process rank ");
  if (const auto signal = number_behind(text, "exited on signal "))
    match.number = -*signal;
  if (const std::size_t node = text.find("on node "); node != text.npos) {
    match.host = text.substr(node + 8);
    match.host = match.host.substr(0, match.host.find(' '));
  }
  return match.rank.has_value();
}

bool read_return_code(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  match.number = number_behind(match.message, "= ");
  return match.number && *match.number != 0;
}

bool read_signal(std::string_view text, LogMatch& match) {
  const std::size_t start = text.rfind("Signal ", match.at);
  if (start == text.npos)
    return false;
  match.message = text.substr(start);
  if (const auto signal = number_behind(match.message, "Signal "))
    match.number = -*signal;
  match.process = number_behind(match.message, "PID ");
  return match.number.has_value();
}

bool read_got_signal(std::string_view text, LogMatch& match) {
  match.message = text;
  if (const auto signal = number_behind(text, "got signal: "))
    match.number = -*signal;
  return match.number.has_value();
}

bool read_cancelled(std::string_view text, LogMatch& match) {
  if (!has(text, "***"))
    return false;
  match.message = text;
  const std::size_t on = text.find(" ON ");
  if (on < match.at) {
    match.host = text.substr(on + 4);
    match.host = match.host.substr(0, match.host.find(' '));
  }
  return true;
}

// "0", "1-3" or "0-3,7"
std::vector<TaskRange> read_tasks(std::string_view list) {
  std::vector<TaskRange> tasks;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const std::optional<Rank> first = leading_rank(item);
    const std::size_t dash = item.find('-');
    const std::optional<Rank> last =
        dash == item.npos ? first : leading_rank(item.substr(dash + 1));
    if (!first || !last || *last < *first)
      return {};
    tasks.push_back({*first, *last});
  }
  return tasks;
}

// "srun: error: node1: tasks 1-3: Out Of Memory"
bool read_srun(std::string_view text, LogMatch& match) {
  match.message = text.substr(match.at);
  std::string_view rest = match.message.substr(13);
  if (rest.starts_with("Node failure on ")) {
    match.host = rest.substr(16);
    match.kind = kCancelled;
    return true;
  }
  const std::size_t task = rest.find(": task");
  if (task == rest.npos)
    return false;
  match.host = rest.substr(0, task);
  rest = rest.substr(task + 6);
  rest = rest.substr(rest.find(' ') == rest.npos ? rest.size()
                                                 : rest.find(' ') + 1);
  const std::size_t colon = rest.find(": ");
  if (colon == rest.npos)
    return false;
  match.tasks = read_tasks(rest.substr(0, colon));
  const std::string_view reason = rest.substr(colon + 2);
  if (has(reason, "Out Of Memory"))
    match.kind = kHostOutOfMemory;
  else if (has(reason, "Segmentation fault") || has(reason, "Bus error") ||
           has(reason, "Aborted"))
    match.kind = kCrash;
  else if (has(reason, "Killed") || has(reason, "Terminated"))
    match.kind = kKilled;
  else
    match.number = number_behind(reason, "exit code ");
  return true;
}

// The most specific first: a line may have several.
constexpr std::array kLogWords = {
    Word{"Watchdog caught collective operation timeout", kCollectiveTimeout,
         read_timeout},
    Word{"srun: error: ", kWorkerFailed, read_srun},
    Word{"Out of memory: Kill", kHostOutOfMemory, read_killed_process},
    Word{"Memory cgroup out of memory: Kill", kHostOutOfMemory,
         read_killed_process},
    Word{"oom_kill event", kHostOutOfMemory, read_whole},
    Word{"oom-kill event", kHostOutOfMemory, read_whole},
    Word{"Xid (", kXid, read_xid},
    Word{"fallen off the bus", kXid, read_bus},
    Word{"NCCL WARN ", kNcclWarning, read_nccl},
    Word{"OutOfMemoryError", kGpuOutOfMemory, read_whole},
    Word{"CUDA out of memory", kGpuOutOfMemory, read_from_word},
    Word{"HIP out of memory", kGpuOutOfMemory, read_from_word},
    Word{"failed to pass monitoredBarrier", kGlooTimeout, read_barrier},
    Word{"timed out in monitoredBarrier", kGlooTimeout, read_barrier},
    Word{"reached monitoredBarrier, but", kGlooTimeout, read_barrier},
    Word{" operation to complete", kGlooTimeout, read_gloo},
    Word{"CUDA error: ", kCudaError, read_from_word},
    Word{"HIP error: ", kCudaError, read_from_word},
    Word{"cuDNN error: ", kCudaError, read_from_word},
    Word{"CUBLAS_STATUS_", kCudaError, read_from_word},
    Word{"device-side assert triggered", kCudaError, read_from_word},
    Word{"an illegal memory access was", kCudaError, read_from_word},
    Word{"Assertion `", kCudaError, read_assertion},
    Word{"is killed by signal: ", kKilled, read_whole},
    Word{"Fatal Python error: ", kCrash, read_from_word},
    Word{"Segmentation fault", kCrash, read_from_word},
    Word{"segfault at ", kCrash, read_whole},
    Word{"Caught signal 11", kCrash, read_from_word},
    Word{"Bus error", kCrash, read_from_word},
    Word{"failed (exitcode: ", kWorkerFailed, read_elastic},
    Word{" noticed that process rank ", kWorkerFailed, read_mpirun},
    Word{"exits with return code = ", kWorkerFailed, read_return_code},
    Word{" received by PID ", kKilled, read_signal},
    Word{" got signal: ", kKilled, read_got_signal},
    Word{" CANCELLED AT ", kCancelled, read_cancelled},
    Word{"watchdog got stuck for ", kWatchdog, read_stuck},
    Word{"Heartbeat monitor timed out!", kWatchdog, read_from_word},
    Word{"Some NCCL operations have failed or timed out", kWatchdog,
         read_from_word},
    Word{"Received a dump signal due to a collective timeout", kWatchdog,
         read_dump_signal},
    Word{"failure detected by watchdog at work", kWatchdog, read_from_word},
    Word{"watchdog thread terminated with exception", kWatchdog,
         read_from_word},
};

constexpr std::size_t pair_of(char a, char b) {
  return static_cast<std::size_t>(static_cast<unsigned char>(a)) << 8 |
         static_cast<unsigned char>(b);
}

// The first two bytes of all phrases, to skip nearly every byte quickly.
const std::bitset<65536>& word_starts() {
  static const std::bitset<65536> starts = [] {
    std::bitset<65536> set;
    for (const Word& word : kLogWords)
      set.set(pair_of(word.text[0], word.text[1]));
    return set;
  }();
  return starts;
}

constexpr std::size_t kAbsent = std::string_view::npos;

// Where each phrase first occurs in the text; false if none does.
bool find_words(std::string_view text,
                std::array<std::size_t, kLogWords.size()>& places) {
  const std::bitset<65536>& starts = word_starts();
  bool found = false;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (!starts[pair_of(text[i], text[i + 1])])
      continue;
    for (std::size_t word = 0; word < kLogWords.size(); ++word)
      if (text.substr(i).starts_with(kLogWords[word].text)) {
        if (!found)
          places.fill(kAbsent);
        found = true;
        places[word] = std::min(places[word], i);
      }
  }
  return found;
}

}  // namespace

std::optional<LogMatch> match_log_text(std::string_view text) {
  std::array<std::size_t, kLogWords.size()> places;
  if (!find_words(text, places))
    return std::nullopt;
  for (std::size_t i = 0; i < kLogWords.size(); ++i) {
    if (places[i] == kAbsent)
      continue;
    LogMatch match;
    match.kind = kLogWords[i].kind;
    match.at = places[i];
    if (!kLogWords[i].read(text, match))
      continue;
    match.message = trimmed(match.message, kBlanks);
    return match;
  }
  return std::nullopt;
}

}  // namespace postflight
