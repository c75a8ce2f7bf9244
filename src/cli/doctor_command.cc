#include <memory>

#include "api/doctor.h"
#include "cli/command.h"
#include "report/doctor/report.h"

namespace postflight {
namespace {

struct DoctorOptions {
  DoctorRequest request;
  bool all = false;
  bool strict = false;
};

Result<Exit> run(const DoctorOptions& options, Session& session) {
  const DoctorRequest& request = options.request;
  if ((request.pid ? 1 : 0) + (request.environment_file.empty() ? 0 : 1) +
          (request.slurm_script.empty() ? 0 : 1) >
      1)
    return fail(ErrorKind::kUsage, "give only one of --pid, --env and --slurm");
  const Examination found = TRY(examine(request, session.context()));
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_examination_json(found, out);
  else
    write_examination(found, options.all, session.terminal(), out);
  return exit_for(found.findings, options.strict);
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .sentence =
          "Checks whether a job's settings allow a hang to be diagnosed.\n"
          "It reads its own environment, that of a process, a file of "
          "variables or a Slurm script, and checks the folder for dumps and "
          "the profiler's permissions on this host. Exit 1 for errors.",
      .examples = {{"postflight doctor", "before a job, in its environment"},
                   {"postflight doctor --slurm train.sbatch",
                    "the script of a job"},
                   {"postflight doctor --pid 4711", "a running job"},
                   {"postflight doctor --all", "every variable, explained"},
                   {"postflight doctor dumps/", "how much the ring holds"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<DoctorOptions>();
        DoctorRequest& request = options->request;
        arguments.positional("DIR", request.dumps,
                             "Dumps of such a job, to measure how many seconds "
                             "the ring buffer holds");
        arguments.option("--pid", request.pid, "N",
                         "Check the environment of this process");
        arguments.option("--env", request.environment_file, "FILE",
                         "Check a file of variables (env > FILE) or a shell "
                         "script; - is standard input");
        arguments.option("--slurm", request.slurm_script, "FILE",
                         "Check a Slurm batch script");
        arguments.flag("--all", options->all,
                       "Show variables that are not set, too");
        arguments.flag("--strict", options->strict,
                       "Exit with 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
