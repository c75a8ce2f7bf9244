#include "api/doctor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "api/checkpoint.h"
#include "base/file.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

Result<JobEnvironment> job_environment(const DoctorRequest& request,
                                       const Context& context) {
  if (request.pid) {
    const std::string path = fmt::format("/proc/{}/environ", *request.pid);
    if (::access(fmt::format("/proc/{}", *request.pid).c_str(), F_OK) != 0)
      return fail(ErrorKind::kUsage, "there is no process {}", *request.pid);
    const Result<MappedFile> file = MappedFile::open(path, context.limits);
    if (!file)
      return fail(ErrorKind::kRefused,
                  "the environment of process {} cannot be read; run as its "
                  "user, or: sudo postflight doctor --pid {}",
                  *request.pid, *request.pid);
    return environment_of_process(as_text(file->bytes()));
  }
  const std::string& script = request.environment_file.empty()
                                  ? request.slurm_script
                                  : request.environment_file;
  if (script.empty()) {
    const MappedFile file =
        TRY(MappedFile::open("/proc/self/environ", context.limits));
    return environment_of_process(as_text(file.bytes()));
  }
  const MappedFile file =
      TRY(MappedFile::open(input_path(script), context.limits));
  return environment_of_script(as_text(file.bytes()));
}

std::string source_of(const DoctorRequest& request) {
  if (request.pid)
    return fmt::format("process {}", *request.pid);
  const std::string& script = request.environment_file.empty()
                                  ? request.slurm_script
                                  : request.environment_file;
  return script.empty()  ? "this environment"
         : script == "-" ? "standard input"
                         : script;
}

}  // namespace

Result<Examination> examine(const DoctorRequest& request,
                            const Context& context) {
  const JobEnvironment environment = TRY(job_environment(request, context));
  CheckedSettings checked = check_settings(environment);
  Examination report;
  report.source = source_of(request);
  if (const auto prefix = dump_prefix(checked, environment))
    report.folder = look_at_folder(
        prefix->substr(0, prefix->rfind('/')),
        request.pid ? fmt::format("/proc/{}/root", *request.pid) : "",
        checked.findings);
  report.profiler = look_at_profiler(checked.findings);
  if (!request.dumps.empty()) {
    const Job job = TRY(load_job(request.dumps, {}, context));
    report.ring = look_at_rings(job, checked.findings);
  }
  report.settings = std::move(checked.settings);
  report.findings = std::move(checked.findings);
  std::ranges::stable_sort(report.findings, std::ranges::greater{},
                           &Finding::severity);
  return report;
}

}  // namespace postflight
