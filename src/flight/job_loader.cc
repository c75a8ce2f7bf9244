#include "flight/job_loader.h"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/worker_pool.h"
#include "flight/dump_files.h"
#include "flight/job_builder.h"
#include "pickle/machine.h"

namespace postflight {
namespace {

// Machines to be used by one thread at a time, their memory again and again.
class Machines {
 public:
  std::unique_ptr<Machine> borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
      return std::make_unique<Machine>();
    std::unique_ptr<Machine> machine = std::move(idle_.back());
    idle_.pop_back();
    return machine;
  }
  void give_back(std::unique_ptr<Machine> machine) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Machine>> idle_;
};

struct FileRead {
  std::uint64_t bytes = 0;
  std::optional<Dump> dump;
  std::optional<SkippedFile> skipped;
};

FileRead read_file(const std::string& file, Machines& machines,
                   const Limits& limits) {
  FileRead read;
  Result<MappedFile> mapped = MappedFile::open(file, limits);
  if (!mapped) {
    read.skipped = {file, std::string(mapped.error().message()), false, -1};
    return read;
  }
  read.bytes = mapped->bytes().size();
  std::unique_ptr<Machine> machine = machines.borrow();
  Result<Dump> dump = read_dump(mapped->bytes(), *machine, limits);
  machines.give_back(std::move(machine));
  if (dump)
    read.dump = *std::move(dump);
  else
    read.skipped = {file, std::string(dump.error().message()),
                    mapped->bytes().empty(), -1};
  return read;
}

}  // namespace

Result<Job> load_files(std::span<const std::string> files,
                       const LoadOptions& options) {
  std::vector<std::vector<Rank>> ranks = TRY(read_ranks(files, options.names));
  if (options.on_start)
    options.on_start(files.size());
  Machines machines;
  JobBuilder builder;
  TRY(WorkerPool(options.threads)
          .map_ordered(
              files.size(),
              [&](std::size_t i) {
                return read_file(files[i], machines, options.limits);
              },
              [&](std::size_t i, FileRead read) -> Result<> {
                if (options.on_file)
                  options.on_file(read.bytes);
                if (read.dump) {
                  builder.add(*std::move(read.dump), files[i],
                              std::move(ranks[i]));
                } else {
                  if (!ranks[i].empty())
                    read.skipped->rank = ranks[i][0].value;
                  builder.skip(*std::move(read.skipped));
                }
                return {};
              }));
  return std::move(builder).finish();
}

Result<Job> load_job(std::span<const std::string> paths,
                     const LoadOptions& options) {
  DumpFiles found = TRY(find_dump_files(paths));
  Job job = TRY(load_files(found.files, options));
  job.findings.insert(job.findings.end(), found.findings.begin(),
                      found.findings.end());
  if (job.ranks.empty()) {
    if (found.files.empty())
      return fail(ErrorKind::kIo, "{}: there are no files", paths[0]);
    return fail(ErrorKind::kUnsupported,
                "{}: none of the {} files is a flight-recorder dump; {}: {}",
                paths[0], found.files.size(), job.skipped[0].file,
                job.skipped[0].reason);
  }
  return job;
}

}  // namespace postflight
