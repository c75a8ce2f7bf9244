#pragma once

#include <cstddef>
#include <vector>

#include <sys/types.h>

#include "base/context.h"
#include "base/error.h"
#include "profile/python/locator.h"
#include "stacks/snapshot.h"

namespace postflight {

struct LiveStackOptions {
  bool native = false;  // native frames, too
  bool locals = false;  // of the innermost frame, and of the user's innermost
  std::size_t most_frames = 500;
};

// Reads the stacks of all threads of a process once, without stopping it:
// Python's from its memory; native ones of threads that wait in the kernel,
// which tells where they wait. Threads that run have only a Python stack.
// Without `native`, threads that run no Python are left out.
Result<ProcessStacks> read_live_stacks(pid_t pid,
                                       const LiveStackOptions& options,
                                       const Context& context,
                                       PythonLocator& locator);

bool runs_python(pid_t pid, PythonLocator& locator);
// Processes that run Python and may be read: those below `pid`, and all of this
// user but this process itself.
std::vector<pid_t> python_children(pid_t pid, PythonLocator& locator);
std::vector<pid_t> python_processes(PythonLocator& locator);

}  // namespace postflight
