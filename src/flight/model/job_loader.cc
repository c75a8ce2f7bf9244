#include "flight/model/job_loader.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "flight/model/dump_files.h"
#include "flight/model/dump_reader.h"
#include "flight/model/job_builder.h"
#include "flight/model/replicas.h"
#include "pickle/machine.h"

namespace postflight {
namespace {

// Machines whose memory is reused; each is used by one thread at a time.
class Machines {
 public:
  explicit Machines(const Limits& limits) : limits_(limits) {}

  std::unique_ptr<Machine> borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
      return std::make_unique<Machine>(limits_);
    std::unique_ptr<Machine> machine = std::move(idle_.back());
    idle_.pop_back();
    return machine;
  }
  void give_back(std::unique_ptr<Machine> machine) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(machine));
  }

 private:
  const Limits& limits_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Machine>> idle_;
};

// Starting threads costs more than reading this much.
constexpr std::uint64_t kBytesOfOneThread = 1 << 20;

std::size_t threads_for(std::span<const std::string> files,
                        const Context& context) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code failed;
    const std::uint64_t size = std::filesystem::file_size(file, failed);
    bytes += failed ? kBytesOfOneThread : size;
    if (bytes > kBytesOfOneThread)
      return context.threads;
  }
  return 1;
}

void add(DumpPart part, const RankNames& names, JobBuilder& builder) {
  std::vector<Rank> candidates = names.candidates(part.file);
  if (part.dump) {
    builder.add(*std::move(part.dump), std::move(part.file),
                std::move(candidates));
    return;
  }
  if (!candidates.empty())
    part.skipped->rank = candidates[0].value;
  builder.skip(*std::move(part.skipped));
}

}  // namespace

Result<Job> load_files(std::span<const std::string> files,
                       const LoadOptions& options, const Context& context) {
  const RankNames names = TRY(RankNames::compile(options.names));
  if (options.on_start)
    options.on_start(files.size());
  Machines machines(context.limits);
  MemberLists lists;
  JobBuilder builder(context.limits);
  Result<> read_all =
      WorkerPool(threads_for(files, context))
          .map_ordered(
              files.size(),
              [&](std::size_t i) {
                std::unique_ptr<Machine> machine = machines.borrow();
                DumpParts read =
                    read_dump_parts(files[i], *machine, context.limits, lists);
                machines.give_back(std::move(machine));
                return read;
              },
              [&](std::size_t, DumpParts read) -> Result<> {
                if (options.on_file)
                  options.on_file(read.bytes);
                for (DumpPart& part : read.parts)
                  add(std::move(part), names, builder);
                return {};
              });
  TRY(std::move(read_all));
  return std::move(builder).finish();
}

Result<Job> load_job(std::span<const std::string> paths,
                     const LoadOptions& options, const Context& context) {
  DumpFiles found = TRY(find_dump_files(paths));
  Job job = TRY(load_files(found.files, options, context));
  job.findings.insert(job.findings.end(), found.findings.begin(),
                      found.findings.end());
  if (job.ranks.empty()) {
    if (found.files.empty())
      return fail(ErrorKind::kIo, "{}: no files found", paths[0]);
    if (found.files.size() == 1 && found.files[0] == paths[0])
      return fail(ErrorKind::kUnsupported, "{}: {}", job.skipped[0].file,
                  job.skipped[0].reason);
    return fail(ErrorKind::kUnsupported,
                "{}: no flight-recorder dump in {} file{}; {}: {}", paths[0],
                found.files.size(), found.files.size() == 1 ? "" : "s",
                job.skipped[0].file, job.skipped[0].reason);
  }
  if (const std::optional<std::int32_t> size = replica_size(job)) {
    shift_replica_groups(job, *size);
    job.findings.push_back(
        {"replicas", Severity::kNote,
         fmt::format("each default group has ranks 0-{}, as in torchft: ranks "
                     "are taken for those of replicas of {}",
                     *size - 1, *size),
         ""});
  }
  return job;
}

}  // namespace postflight
