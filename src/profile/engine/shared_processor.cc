#include "profile/engine/shared_processor.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace postflight {

bool SharedProcessor::join(int processor) {
  if (::sched_getcpu() == processor && joined_ == processor)
    return true;
  Processors only = {};
  const auto number = static_cast<std::size_t>(processor);
  if (processor < 0 || number >= 64 * only.size())
    return false;
  if (tid_ == 0) {
    // The C library's function does not return the size of the kernel's mask.
    const long got =
        ::syscall(SYS_sched_getaffinity, 0, sizeof(before_), before_.data());
    if (got <= 0)
      return false;
    before_bytes_ = static_cast<std::size_t>(got);
    tid_ = ::gettid();
  }
  // Stay within the affinity that a user or a container has set.
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  if ((before_[number / 64] & bit) == 0)
    return false;
  only[number / 64] = bit;
  if (::syscall(SYS_sched_setaffinity, 0, before_bytes_, only.data()) != 0)
    return false;
  joined_ = processor;
  return ::sched_getcpu() == processor;
}

void SharedProcessor::leave() {
  if (joined_ < 0)
    return;
  joined_ = -1;
  ::syscall(SYS_sched_setaffinity, tid_, before_bytes_, before_.data());
}

}  // namespace postflight
