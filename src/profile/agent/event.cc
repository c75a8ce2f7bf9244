#include "profile/agent/event.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace postflight {
namespace {

constexpr std::size_t kEventBytes = 4096;

bool sends_signal(int file, int signal) {
  const f_owner_ex owner = {F_OWNER_TID, ::gettid()};
  return ::fcntl(file, F_SETFL, O_NONBLOCK | O_ASYNC) == 0 &&
         ::fcntl(file, F_SETSIG, signal) == 0 &&
         ::fcntl(file, F_SETOWN_EX, &owner) == 0;
}

}  // namespace

void* open_event(std::uint64_t period_ns, int signal, int& error) {
  perf_event_attr attributes = {};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.wakeup_events = 1;
  if (signal == SIGTRAP) {
    attributes.sigtrap = 1;
    attributes.remove_on_exec = 1;
  }
  const int file = static_cast<int>(::syscall(SYS_perf_event_open, &attributes,
                                              0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (file < 0) {
    error = errno;
    return nullptr;
  }
  void* event = MAP_FAILED;
  if (signal == SIGTRAP || sends_signal(file, signal))
    event = ::mmap(nullptr, kEventBytes, PROT_READ, MAP_SHARED, file, 0);
  error = errno;
  if (event != MAP_FAILED)
    ::ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
  ::close(file);
  return event == MAP_FAILED ? nullptr : event;
}

void close_event(void* event) {
  if (event != nullptr)
    ::munmap(event, kEventBytes);
}

bool events_trap() {
  // Earlier ones may hang where such an event is closed (Linux 6.11 to 6.15) or
  // never free it, and before 5.19 kill threads that block the signal.
  constexpr unsigned long kMajor = 6;
  constexpr unsigned long kMinor = 16;
  utsname system;
  if (::uname(&system) != 0)
    return false;
  char* rest = system.release;
  const unsigned long major = std::strtoul(rest, &rest, 10);
  if (*rest != '.')
    return false;
  const unsigned long minor = std::strtoul(rest + 1, &rest, 10);
  return major > kMajor || (major == kMajor && minor >= kMinor);
}

}  // namespace postflight
