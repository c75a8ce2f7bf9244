#include "joblog/job_log.h"

#include "joblog/line_reader.h"
#include "joblog/names.h"
#include "joblog/scanner.h"
#include "stream/codec/compression.h"
#include "stream/file_stream.h"
#include "stream/filter_stream.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace postflight {
namespace {

// The first bytes of a file, already read to detect its compression, followed
// by the rest.
class RejoinedSource : public Source {
 public:
  RejoinedSource(Bytes front, Source& rest) : front_(front), rest_(rest) {}

  Result<Taken> read(std::span<std::byte> to) override {
    if (front_.empty())
      return rest_.read(to);
    const std::size_t count = std::min(front_.size(), to.size());
    copy_bytes(front_.first(count), to);
    front_ = front_.subspan(count);
    return Taken{count, false};
  }
  std::uint64_t tell() const override { return rest_.tell() - front_.size(); }

 private:
  Bytes front_;
  Source& rest_;
};

// A flight-recorder dump among the logs: the opcode PROTO and its version.
bool is_pickle(Bytes front) {
  return front.size() >= 2 && front[0] == std::byte{0x80} &&
         front[1] >= std::byte{1} && front[1] <= std::byte{5};
}

class JobLogReader {
 public:
  explicit JobLogReader(const JobLogOptions& options)
      : options_(options), fold_(options.limits) {}

  Result<> read(const std::string& file, const LogName& name,
                std::size_t number);
  JobLog finish(std::span<const std::string> files);

 private:
  Result<> scan(const std::string& file, LogScanner& scanner);
  void scan_lines(Source& source, const std::string& file, LogScanner& scanner);
  void merge(LogScanner& scanner, const LogName& name, std::size_t number);
  void merge_heard(const LogScanner& scanner, const LogName& name);
  void merge_progress(LogScanner& scanner, const LogName& name,
                      const std::string& file);
  void attribute(FoldedEvent& folded, const LogScanner& scanner,
                 const LogName& name) const;
  std::optional<Rank> rank_of(const LogOrigin& origin,
                              const LogScanner& scanner,
                              const LogName& name) const;
  std::optional<Rank> look_up(std::optional<Rank> local, std::string_view host,
                              std::optional<Rank> task,
                              const LogScanner& scanner,
                              const LogName& name) const;
  void mark_earliest(std::vector<FoldedEvent>& events) const;

  const JobLogOptions& options_;
  LogFold fold_;
  JobLog log_;
  std::uint64_t dropped_ = 0;
  std::uint64_t dropped_progress_ = 0;
  RankBag speakers_;
  std::optional<LogTime> full_time_;
  std::optional<LogTime> restarted_;
};

void JobLogReader::scan_lines(Source& source, const std::string& file,
                              LogScanner& scanner) {
  LineReader lines(source, options_.limits.max_log_line_bytes);
  for (;;) {
    const Result<bool> more = lines.next();
    if (!more)
      log_.findings.push_back(
          {"log_damaged", Severity::kWarning,
           fmt::format("the log could only be read up to line {}: {}",
                       lines.number(), more.error().message()),
           file});
    if (!more || !*more)
      break;
    ++log_.lines;
    scanner.take(lines.line(), lines.number());
  }
  scanner.finish();
}

Result<> JobLogReader::scan(const std::string& file, LogScanner& scanner) {
  FileSource source = TRY(FileSource::open(file));
  std::array<std::byte, 4> buffer;
  const std::size_t size = TRY(read_fully(source, buffer));
  const Bytes front = Bytes(buffer).first(size);
  if (size == 0) {
    log_.findings.push_back(
        {"log_empty", Severity::kNote, "the log is empty", file});
    return {};
  }
  if (is_pickle(front)) {
    log_.findings.push_back(
        {"log_is_dump", Severity::kWarning,
         "the file is a pickle, not a log: give dumps without --log", file});
    return {};
  }
  if (as_text(front) == "PK\x03\x04") {
    log_.findings.push_back({"log_is_archive", Severity::kWarning,
                             "the file is a zip archive, not a log", file});
    return {};
  }
  const Compression compression = sniff_compression(front);
  RejoinedSource whole(front, source);
  if (compression == Compression::kNone) {
    scan_lines(whole, file, scanner);
    return {};
  }
  FilterSource decoded(whole, TRY(make_decoder(compression, options_.limits)));
  scan_lines(decoded, file, scanner);
  return {};
}

// The global rank for torchrun's local rank. The host is that of the line or
// the file, or else the node whose number Slurm put before the line.
std::optional<Rank> JobLogReader::look_up(std::optional<Rank> local,
                                          std::string_view host,
                                          std::optional<Rank> task,
                                          const LogScanner& scanner,
                                          const LogName& name) const {
  if (!local)
    local = name.local_rank;
  if (!local || options_.hosts == nullptr)
    return std::nullopt;
  const std::vector<std::string>& hosts = options_.hosts->hosts();
  if (host.empty())
    host = name.host;
  if (host.empty() && task && scanner.tasks_are_nodes() &&
      static_cast<std::size_t>(task->value) < hosts.size())
    host = hosts[static_cast<std::size_t>(task->value)];
  return options_.hosts->rank_at(host, local->value);
}

// Decides which of the ranks that a file gives for an event to use.
void JobLogReader::attribute(FoldedEvent& folded, const LogScanner& scanner,
                             const LogName& name) const {
  const auto bag = [&](RankSource source) -> RankBag& {
    return folded.ranks[static_cast<std::size_t>(source)];
  };
  LogEvent& event = folded.event;
  const bool name_holds =
      name.rank && (!scanner.has_ranks() || scanner.only_rank() == name.rank);
  std::optional<Rank> fallback;
  if (name_holds)
    fallback = name.rank;
  else
    fallback = look_up(event.local_rank, event.host, event.task, scanner, name);
  const bool believed =
      folded.rank_source == RankSource::kLine ||
      (folded.rank_source == RankSource::kLabel && !scanner.tasks_are_nodes());
  if (!believed && (fallback || folded.rank_source != RankSource::kGroup))
    event.rank = fallback;
  if (!event.local_rank)
    event.local_rank = name.local_rank;
  if (event.host.empty())
    event.host = name.host;
  if (event.host.empty() && event.rank && options_.hosts != nullptr)
    event.host = options_.hosts->host_of(*event.rank);

  event.ranks = bag(RankSource::kLine).sorted();
  const auto append = [&](RankSource source) {
    const std::vector<Rank> more = bag(source).sorted();
    event.ranks.insert(event.ranks.end(), more.begin(), more.end());
  };
  if (!scanner.tasks_are_nodes())
    append(RankSource::kLabel);
  if (folded.unattributed || scanner.tasks_are_nodes()) {
    if (fallback && (folded.unattributed || event.ranks.empty()))
      event.ranks.push_back(*fallback);
    else if (!name_holds)
      append(RankSource::kGroup);
  }
}

// The rank in the job of who wrote a line; nothing if only its rank in some
// group is known.
std::optional<Rank> JobLogReader::rank_of(const LogOrigin& origin,
                                          const LogScanner& scanner,
                                          const LogName& name) const {
  if (origin.rank_source == RankSource::kLine ||
      (origin.rank_source == RankSource::kLabel && !scanner.tasks_are_nodes()))
    return origin.rank;
  if (name.rank && (!scanner.has_ranks() || scanner.only_rank() == name.rank))
    return name.rank;
  if (const std::optional<Rank> known =
          look_up(origin.local_rank, origin.host, origin.task, scanner, name))
    return known;
  // The whole file may be that of one rank.
  return scanner.has_ranks() && !origin.local_rank ? scanner.only_rank()
                                                   : std::nullopt;
}

// A log without ranks is that of the rank in its name.
void JobLogReader::merge_heard(const LogScanner& scanner, const LogName& name) {
  const auto hear = [&](Rank rank, LogTime time) {
    const auto [found, is_new] = log_.heard.try_emplace(rank, time);
    if (!is_new && (time.has_year == found->second.has_year
                        ? time.nanoseconds > found->second.nanoseconds
                        : time.has_year))
      found->second = time;
  };
  for (const auto& [rank, heard] : scanner.heard())
    if (heard.source == RankSource::kLine ||
        (heard.source == RankSource::kLabel && !scanner.tasks_are_nodes()))
      hear(rank, heard.time);
  const bool holds = !scanner.has_ranks() || scanner.only_rank() == name.rank;
  if (name.rank && holds && scanner.heard_without_rank())
    hear(*name.rank, *scanner.heard_without_rank());
}

void JobLogReader::merge_progress(LogScanner& scanner, const LogName& name,
                                  const std::string& file) {
  dropped_progress_ += scanner.progress().dropped();
  for (const Rank rank : scanner.speakers())
    speakers_.add(rank);
  if (name.rank)
    speakers_.add(*name.rank);
  if (const auto size = scanner.progress().world_size())
    log_.world_size = std::max(log_.world_size.value_or(0), *size);
  for (ProgressTable::Said& said : scanner.progress().said()) {
    LogProgress& progress = said.progress;
    progress.rank = rank_of(said.origin, scanner, name);
    // In the group of all, both ranks are one.
    if (!progress.rank && progress.named && progress.of_all())
      progress.rank = progress.place;
    progress.time = said.origin.time;
    progress.host = said.origin.host.empty() ? name.host : said.origin.host;
    progress.file = file;
    if (log_.progress.size() < max_log_progress(options_.limits))
      log_.progress.push_back(std::move(progress));
    else
      ++dropped_progress_;
  }
  for (ProgressTable::Claimed& claimed : scanner.progress().claims()) {
    claimed.claim.rank = rank_of(claimed.origin, scanner, name);
    claimed.claim.file = file;
    if (log_.claims.size() < max_log_progress(options_.limits))
      log_.claims.push_back(std::move(claimed.claim));
  }
}

void JobLogReader::merge(LogScanner& scanner, const LogName& name,
                         std::size_t number) {
  dropped_ += scanner.dropped();
  if (const auto time = scanner.restarted();
      time && (!restarted_ || time->nanoseconds > restarted_->nanoseconds))
    restarted_ = time;
  if (!full_time_)
    full_time_ = scanner.full_time();
  for (FoldedEvent& folded : scanner.events()) {
    attribute(folded, scanner, name);
    const std::vector<Rank> ranks = std::exchange(folded.event.ranks, {});
    fold_.add(folded.event, folded.order, number, RankSource::kLine, ranks);
  }
}

Result<> JobLogReader::read(const std::string& file, const LogName& name,
                            std::size_t number) {
  LogScanner scanner(options_.limits);
  TRY(scan(file, scanner));
  merge(scanner, name, number);
  merge_heard(scanner, name);
  merge_progress(scanner, name, file);
  return {};
}

// The first event is the earliest, unless another file has no times to compare
// with.
void JobLogReader::mark_earliest(std::vector<FoldedEvent>& events) const {
  const auto found = std::ranges::find_if(events, [](const FoldedEvent& one) {
    return !one.event.of_earlier_attempt;
  });
  if (found == events.end())
    return;
  const FoldedEvent& first = *found;
  const bool known = std::ranges::all_of(events, [&](const FoldedEvent& other) {
    return other.file == first.file || other.event.of_earlier_attempt ||
           (first.order && other.order &&
            first.order->has_year == other.order->has_year);
  });
  found->event.earliest = known;
}

JobLog JobLogReader::finish(std::span<const std::string> files) {
  std::vector<FoldedEvent>& events = fold_.events();
  for (FoldedEvent& folded : events) {
    folded.event.file = files[folded.file];
    folded.event.ranks =
        folded.ranks[static_cast<std::size_t>(RankSource::kLine)].sorted();
    if (full_time_ && folded.order)
      folded.order = with_year(*folded.order, *full_time_);
    if (full_time_ && folded.event.time)
      folded.event.time = with_year(*folded.event.time, *full_time_);
    if (full_time_ && folded.event.last)
      folded.event.last = with_year(*folded.event.last, *full_time_);
  }
  if (full_time_ && restarted_)
    restarted_ = with_year(*restarted_, *full_time_);
  const auto is_before_restart = [&](const std::optional<LogTime>& time) {
    return restarted_ && time && time->has_year == restarted_->has_year &&
           time->nanoseconds < restarted_->nanoseconds;
  };
  for (FoldedEvent& folded : events)
    folded.event.of_earlier_attempt |= is_before_restart(folded.event.last);
  std::ranges::sort(events, comes_before);
  mark_earliest(events);
  for (FoldedEvent& folded : events)
    log_.events.push_back(std::move(folded.event));
  dropped_ += fold_.dropped();
  if (dropped_ > 0)
    log_.findings.push_back(
        {"log_events_dropped", Severity::kNote,
         fmt::format(
             "{} more lines are omitted: at most {} events of each kind "
             "are kept",
             dropped_, options_.limits.max_log_events),
         ""});
  if (dropped_progress_ > 0)
    log_.findings.push_back(
        {"log_progress_dropped", Severity::kNote,
         fmt::format("what the logs say of {} more ranks and groups is "
                     "omitted: at most {} are kept",
                     dropped_progress_, max_log_progress(options_.limits)),
         ""});
  for (LogProgress& one : log_.progress)
    if (full_time_ && one.time)
      one.time = with_year(*one.time, *full_time_);
  for (LogClaim& one : log_.claims)
    if (full_time_ && one.time)
      one.time = with_year(*one.time, *full_time_);
  std::erase_if(log_.progress, [&](const LogProgress& one) {
    return is_before_restart(one.time);
  });
  std::erase_if(log_.claims, [&](const LogClaim& one) {
    return is_before_restart(one.time);
  });
  if (full_time_)
    for (auto& [rank, time] : log_.heard)
      time = with_year(time, *full_time_);
  log_.speakers = speakers_.sorted();
  return std::move(log_);
}

// The rank that the first lines of a log are of, if that is one.
std::optional<Rank> rank_at_front(const std::string& file,
                                  const Limits& limits) {
  constexpr int kLines = 2000;
  Result<FileSource> source = FileSource::open(file);
  if (!source)
    return std::nullopt;
  LineReader lines(*source, limits.max_log_line_bytes);
  std::optional<Rank> rank;
  for (int i = 0; i < kLines; ++i) {
    const Result<bool> more = lines.next();
    if (!more || !*more)
      break;
    const LogLine line = read_log_line(lines.line());
    if (line.rank_source != RankSource::kLine)
      continue;
    if (rank && rank != line.rank)
      return std::nullopt;
    rank = line.rank;
  }
  return rank;
}

// The first rank of the host whose torchrun wrote these logs by the ranks on
// that host, as one of them is known; a job of one host begins with 0.
void place_local_ranks(std::span<const std::string> files, const Limits& limits,
                       std::vector<LogName>& names) {
  // By the folder above those of attempts.
  const auto root_of = [&](std::size_t i) {
    return files[i].substr(0, files[i].rfind("attempt_"));
  };
  std::map<std::string, std::set<std::int64_t>> firsts;
  std::map<std::string, std::set<Rank>> locals;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (names[i].local_rank && !names[i].rank) {
      locals[root_of(i)].insert(*names[i].local_rank);
      std::set<std::int64_t>& known = firsts[root_of(i)];
      if (const std::optional<Rank> rank = rank_at_front(files[i], limits))
        known.insert(std::int64_t{rank->value} - names[i].local_rank->value);
    }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!names[i].local_rank || names[i].rank)
      continue;
    const std::set<std::int64_t>& known = firsts[root_of(i)];
    const bool one_host = firsts.size() == 1 && locals[root_of(i)].size() > 1;
    if (known.size() > 1 || (known.empty() && !one_host))
      continue;
    const std::int64_t first = known.empty() ? 0 : *known.begin();
    const std::int64_t rank = first + names[i].local_rank->value;
    if (first >= 0 && rank <= INT32_MAX)
      names[i].rank = Rank{static_cast<std::int32_t>(rank)};
  }
}

}  // namespace

Result<JobLog> read_job_logs(std::span<const std::string> files,
                             const JobLogOptions& options) {
  std::vector<LogName> names = read_log_names(files);
  if (options.hosts == nullptr)
    place_local_ranks(files, options.limits, names);
  JobLogReader reader(options);
  for (std::size_t i = 0; i < files.size(); ++i)
    TRY(reader.read(files[i], names[i], i));
  return reader.finish(files);
}

}  // namespace postflight
