#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "profile/process/map.h"
#include "profile/process/memory.h"
#include "profile/python/layout.h"

namespace postflight {

// A Python interpreter inside a process.
struct PythonRuntime {
  std::uint64_t address = 0;    // of _PyRuntime
  std::uint64_t code_type = 0;  // of PyCode_Type; 0: not known
  PythonVersion version = {};
  PythonLayout layout = {};
};

// Finds the Python interpreter of processes by the symbols of their programs
// and libraries, each of which is read only once.
class PythonLocator {
 public:
  // Nothing if the process does not run Python, or not yet; an error if it runs
  // a version that is not supported. `starting`: an interpreter that has no
  // threads yet will do.
  Result<std::optional<PythonRuntime>> find(pid_t pid, const Memory& memory,
                                            bool starting = false);

 private:
  // Addresses in one file, before relocation.
  struct Image {
    std::optional<std::uint64_t> runtime;
    std::optional<std::uint64_t> code_type;
    std::optional<std::uint64_t> version;
    // Of each loaded segment's first page.
    std::map<std::uint64_t, std::uint64_t> address_of_offset;
  };

  const Image& image(pid_t pid, const Mapping& mapping);

  std::map<std::string, Image, std::less<>> images_;
};

// The version in the name of a program or library: "libpython3.9.so.1.0".
std::optional<PythonVersion> version_in_name(std::string_view path);

// Whether the runtime is initialised, has a first thread, and is consistent
// with its layout.
bool is_running(const PythonRuntime& runtime, const Memory& memory);

// A thread of Python.
struct PythonThread {
  std::uint64_t state = 0;  // the address of its PyThreadState
  pid_t tid = 0;

  auto operator<=>(const PythonThread&) const = default;
};

// All threads of all interpreters; empty if the runtime cannot be read.
std::vector<PythonThread> python_threads(const Memory& memory,
                                         const PythonRuntime& runtime);

}  // namespace postflight
