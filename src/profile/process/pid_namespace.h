#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace postflight {

// PID namespaces: a process in a container calls itself by another number than
// we do.

// The namespace of a process, as the inode that stands for it; 0 if the process
// has ended or may not be looked at.
std::uint64_t pid_namespace(pid_t pid);

// What a thread of a process is called in its own namespace.
std::optional<pid_t> innermost_pid(pid_t pid, pid_t tid);

}  // namespace postflight
