#pragma once

#include <mutex>

namespace postflight {

// A forked child has one thread, so a mutex that another one had locked would
// stay locked there for ever. A library cannot know when its process forks.
//
// From now on a fork waits for this mutex. For those of the whole process that
// are not locked while code of the caller's runs, as that may wait for the
// thread that forks. A mutex that is locked inside another has the higher rank.
void hold_during_forks(std::mutex& mutex, int rank);

}  // namespace postflight
