#include "joblog/job_log.h"

#include "joblog/line_reader.h"
#include "joblog/names.h"
#include "joblog/scanner.h"
#include "stream/codec/compression.h"
#include "stream/file_stream.h"
#include "stream/filter_stream.h"

#include <algorithm>
#include <array>
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
  void attribute(FoldedEvent& folded, const LogScanner& scanner,
                 const LogName& name) const;
  std::optional<Rank> look_up(const LogEvent& event, const LogScanner& scanner,
                              const LogName& name) const;
  void mark_earliest(std::vector<FoldedEvent>& events) const;

  const JobLogOptions& options_;
  LogFold fold_;
  JobLog log_;
  std::uint64_t dropped_ = 0;
  std::optional<LogTime> full_time_;
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
std::optional<Rank> JobLogReader::look_up(const LogEvent& event,
                                          const LogScanner& scanner,
                                          const LogName& name) const {
  const std::optional<Rank> local =
      event.local_rank ? event.local_rank : name.local_rank;
  if (!local || options_.hosts == nullptr)
    return std::nullopt;
  const std::vector<std::string>& hosts = options_.hosts->hosts();
  std::string_view host = event.host.empty() ? name.host : event.host;
  if (host.empty() && event.task && scanner.tasks_are_nodes() &&
      static_cast<std::size_t>(event.task->value) < hosts.size())
    host = hosts[static_cast<std::size_t>(event.task->value)];
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
    fallback = look_up(event, scanner, name);
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

void JobLogReader::merge(LogScanner& scanner, const LogName& name,
                         std::size_t number) {
  dropped_ += scanner.dropped();
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
  return {};
}

// The first event is the earliest, unless another file has no times to compare
// with.
void JobLogReader::mark_earliest(std::vector<FoldedEvent>& events) const {
  if (events.empty())
    return;
  const FoldedEvent& first = events.front();
  const bool known = std::ranges::all_of(events, [&](const FoldedEvent& other) {
    return other.file == first.file ||
           (first.order && other.order &&
            first.order->has_year == other.order->has_year);
  });
  events.front().event.earliest = known;
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
  }
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
  return std::move(log_);
}

}  // namespace

Result<JobLog> read_job_logs(std::span<const std::string> files,
                             const JobLogOptions& options) {
  const std::vector<LogName> names = read_log_names(files);
  JobLogReader reader(options);
  for (std::size_t i = 0; i < files.size(); ++i)
    TRY(reader.read(files[i], names[i], i));
  return reader.finish(files);
}

}  // namespace postflight
