#include "joblog/host_map.h"
#include "joblog/line_reader.h"
#include "joblog/reported_job.h"
#include "joblog/scanner.h"
#include "stream/memory_stream.h"

#include <cstddef>
#include <cstdint>

using namespace postflight;

// Any bytes are a log, and some are a host list.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Limits limits{.max_listed_hosts = 1000,
                      .max_listed_ranks = 10'000,
                      .max_log_line_bytes = 4096,
                      .max_log_events = 50,
                      .max_log_event_ranks = 1000,
                      .max_open_tracebacks = 4};
  const Bytes bytes = std::as_bytes(std::span(data, size));

  MemorySource source(bytes);
  LineReader lines(source, limits.max_log_line_bytes);
  LogScanner scanner(limits);
  for (;;) {
    const Result<bool> more = lines.next();
    if (!more)
      __builtin_trap();
    if (!*more)
      break;
    scanner.take(lines.line(), lines.number());
  }
  scanner.finish();
  if (scanner.events().size() > limits.max_log_events * kLogEventKinds)
    __builtin_trap();

  if (scanner.progress().said().size() > max_log_progress(limits))
    __builtin_trap();
  JobLog log;
  log.world_size = scanner.progress().world_size();
  for (ProgressTable::Said& said : scanner.progress().said()) {
    said.progress.rank =
        said.origin.rank ? said.origin.rank : said.progress.place;
    log.progress.push_back(said.progress);
  }
  for (ProgressTable::Claimed& claimed : scanner.progress().claims())
    log.claims.push_back(claimed.claim);
  const ReportedJob reported = make_reported_job(log);
  if (reported.whole.size() != reported.job.groups.size())
    __builtin_trap();
  for (const RankDump& dump : reported.job.ranks)
    for (const GroupId group : dump.groups)
      if (!reported.job.group(group).has(dump.rank))
        __builtin_trap();

  const Result<HostMap> map = read_host_map(as_text(bytes), 64, limits);
  if (map && (map->size() > limits.max_listed_ranks ||
              map->hosts().size() > limits.max_listed_hosts))
    __builtin_trap();
  return 0;
}
