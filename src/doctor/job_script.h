#pragma once

#include <string_view>

#include "doctor/settings.h"
#include "doctor/shell.h"

namespace postflight {

// Follows a script from top to bottom as a shell would, without running
// anything: assignments, export, set -a, unset, quotes, $NAME and
// ${NAME:-default}, here-documents, and what srun, env, mpirun and container
// runtimes pass on. The environment is that of the programs it launches, or the
// one at its end if there are none. Both branches of an `if` are taken, loops
// run once, and files that it reads are not followed. `known` are variables
// that `$NAME` may refer to.
JobScript read_job_script(std::string_view text,
                          const JobEnvironment& known = {});

// Reads a file of variables: NAME=VALUE a line, as env and docker --env-file
// write it, or /proc/PID/environ; or a script, if it looks like one.
JobScript read_environment_file(std::string_view text,
                                const JobEnvironment& known = {});

}  // namespace postflight
