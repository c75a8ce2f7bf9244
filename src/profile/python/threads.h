#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "profile/process/memory.h"
#include "profile/python/locator.h"

namespace postflight {

// A thread that Python knows of.
struct PythonThread {
  std::uint64_t state = 0;  // where its PyThreadState is
  pid_t tid = 0;

  auto operator<=>(const PythonThread&) const = default;
};

// All threads of all interpreters; empty if the runtime cannot be read.
std::vector<PythonThread> python_threads(const Memory& memory,
                                         const PythonRuntime& runtime);

}  // namespace postflight
