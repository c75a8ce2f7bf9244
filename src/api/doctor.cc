#include "api/doctor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "api/checkpoint.h"
#include "base/environment.h"
#include "base/file.h"
#include "doctor/job_script.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

// What a job is given, and what is odd about how it gets it.
Result<JobScript> job_settings(const DoctorRequest& request,
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
    return JobScript{.environment =
                         environment_of_process(as_text(file->bytes()))};
  }
  const std::string& script = request.environment_file.empty()
                                  ? request.slurm_script
                                  : request.environment_file;
  if (script.empty()) {
    const MappedFile file =
        TRY(MappedFile::open("/proc/self/environ", context.limits));
    return JobScript{.environment =
                         environment_of_process(as_text(file.bytes()))};
  }
  // The job runs as the same user.
  JobEnvironment known;
  for (const char* const name : {"HOME", "USER"})
    if (const auto value = process_environment()(name))
      known[name] = *value;
  const MappedFile file =
      TRY(MappedFile::open(input_path(script), context.limits));
  const std::string_view text = as_text(file.bytes());
  if (!request.slurm_script.empty())
    return read_job_script(text, known);
  JobScript read = read_environment_file(text, known);
  if (read.environment.empty() && read.findings.empty())
    return fail(ErrorKind::kUnsupported,
                "{}: no variables found; give the output of env, a file of "
                "NAME=VALUE lines, /proc/PID/environ or a shell script",
                script == "-" ? "standard input" : script);
  return read;
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
  const JobScript script = TRY(job_settings(request, context));
  const JobEnvironment& environment = script.environment;
  CheckedSettings checked = check_settings(environment);
  checked.findings.insert(checked.findings.end(), script.findings.begin(),
                          script.findings.end());
  Examination report;
  report.source = source_of(request);
  if (const auto prefix = dump_prefix(checked, environment)) {
    const std::string folder = prefix->substr(0, prefix->rfind('/'));
    report.folder = look_at_folder(
        folder, request.pid ? fmt::format("/proc/{}/root", *request.pid) : "",
        checked.findings);
    // torch makes the folder where it dumps by default, the script its own.
    const bool made =
        !checked.find("TORCH_FR_DUMP_TEMP_FILE").value ||
        std::ranges::find(script.folders, folder) != script.folders.end();
    if (made)
      std::erase_if(checked.findings, [](const Finding& finding) {
        return finding.kind == "folder_missing";
      });
  }
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
