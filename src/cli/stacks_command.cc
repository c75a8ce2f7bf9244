#include <memory>
#include <string>

#include "api/stacks.h"
#include "cli/command.h"
#include "profile/engine/sampling_interval.h"
#include "report/stacks/report.h"

namespace postflight {
namespace {

struct StacksOptions {
  StacksRequest request;
  std::string again;
  bool all = false;
};

Result<Exit> run(const StacksOptions& options, Session& session) {
  StacksRequest request = options.request;
  if (request.pids.empty() && request.files.empty() && !request.mine)
    return fail(ErrorKind::kUsage,
                "nothing to look at: give --pid N, --mine or files "
                "(postflight stacks --help)");
  if (request.children && request.pids.empty())
    return fail(ErrorKind::kUsage, "--children needs --pid");
  if (!options.again.empty())
    request.again = TRY(parse_profile_duration(options.again));
  const StackSnapshot snapshot =
      TRY(collect_stacks(request, session.context()));
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_stacks_json(snapshot, out);
  else
    write_stacks(snapshot, {.all = options.all}, session.terminal(), out);
  return exit_for(snapshot.findings);
}

}  // namespace

Command stacks_command() {
  return {
      .name = "stacks",
      .sentence =
          "Shows what every thread of Python processes does, once.\n"
          "Processes are read without being stopped. Several are merged into "
          "one tree, the odd ones first. Saved stacks (py-spy, "
          "faulthandler, torch's debug server, gdb) are read, too. Exit 1 if "
          "some could not be read.",
      .examples = {{"postflight stacks --pid 4711", "one process, all threads"},
                   {"postflight stacks --pid 4711 --children",
                    "torchrun's ranks"},
                   {"postflight stacks --mine --again 2s", "stuck or busy?"},
                   {"postflight stacks rank*.txt", "stacks saved on all nodes"},
                   {"postflight stacks --mine --json > node3.json",
                    "to save them"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<StacksOptions>();
        StacksRequest& request = options->request;
        arguments.positional("FILE", request.files,
                             "Saved stacks: files or folders; - is standard "
                             "input");
        arguments.option("--pid", request.pids, "N",
                         "Read this process; may be repeated");
        arguments.flag("--children", request.children,
                       "Also read the Python processes below it");
        arguments.flag("--mine", request.mine,
                       "Read every Python process of this user");
        arguments.flag("--native", request.native,
                       "Also show native frames of waiting threads");
        arguments.flag("--locals", request.locals,
                       "Show local variables of the innermost Python frame "
                       "and of the innermost one outside of libraries");
        arguments.option("--again", options->again, "TIME",
                         "Read them again after this time (2s), to tell stuck "
                         "threads from busy ones");
        arguments.flag(
            "--all", options->all,
            "Show all threads of several processes, not only the main ones");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
