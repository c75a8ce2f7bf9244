#include "base/interrupt.h"

#include "base/atomic_file.h"
#include "base/child_process.h"
#include "base/test_files.h"

#include <array>

#include <spawn.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;

class InterruptedBy : public testing::TestWithParam<int> {};

TEST_P(InterruptedBy, CleansUpAndDiesOfIt) {
  const TemporaryFolder scratch = scratch_folder();
  Gate ready;
  const ChildProcess child([&] {
    const Result<InterruptGuard> guard = InterruptGuard::start();
    const InterruptCleanup cleanup(
        [&] { write_file(scratch.path() / "callback", "ran"); });
    {
      const InterruptCleanup over([&] { ::_exit(9); });
    }
    const TemporaryFolder folder =
        must(TemporaryFolder::create(scratch.path()));
    write_file(folder.path() / "inside", "x");
    AtomicFile file = must(AtomicFile::create(scratch.path() / "out"));
    if (!guard || !file.write(as_bytes("half of it")))
      return 1;
    ready.open();
    for (;;)
      ::pause();
  });
  ready.only_wait();
  ASSERT_TRUE(ready.wait());

  ::kill(child.id(), GetParam());

  // 1000 and more: died of a signal.
  EXPECT_EQ(child.wait(), 1000 + GetParam());
  EXPECT_EQ(read_file(scratch.path() / "callback"), "ran");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 1);
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptedBy,
                         testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(InterruptGuard, LeavesAnIgnoredSignalIgnored) {
  const ChildProcess child([] {
    ::signal(SIGHUP, SIG_IGN);
    const Result<InterruptGuard> guard = InterruptGuard::start();
    ::kill(::getpid(), SIGHUP);
    return guard ? 7 : 1;
  });
  EXPECT_EQ(child.wait(), 7);
}

TEST(InterruptGuard, StopsAndLeavesSignalsAsTheyWere) {
  const ChildProcess child([] {
    {
      const Result<InterruptGuard> guard = InterruptGuard::start();
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      if (!guard || sigismember(&mask, SIGINT) != 1)
        return 1;
    }
    ::kill(::getpid(), SIGINT);
    return 2;
  });
  EXPECT_EQ(child.wait(), 1000 + SIGINT);
}

TEST(InterruptGuard, LetsASecondSignalEndAHangingCleanUp) {
  Gate ready;
  const ChildProcess child([&] {
    const Result<InterruptGuard> guard = InterruptGuard::start();
    const InterruptCleanup hanging([&] {
      ready.open();
      for (;;)
        ::pause();
    });
    ready.open();
    for (;;)
      ::pause();
    return guard ? 0 : 1;
  });
  ready.only_wait();
  ASSERT_TRUE(ready.wait());
  ::kill(child.id(), SIGINT);
  ASSERT_TRUE(ready.wait());

  ::kill(child.id(), SIGTERM);

  EXPECT_EQ(child.wait(), 1000 + SIGTERM);
}

TEST(InterruptGuard, HasAMaskForChildrenThatLetsThemBeInterrupted) {
  const ChildProcess child([] {
    const Result<InterruptGuard> guard = InterruptGuard::start();
    const sigset_t mask = InterruptGuard::child_mask();
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigmask(&attributes, &mask);
    const char* arguments[] = {"sh", "-c", "kill -INT $$", nullptr};
    pid_t id = 0;
    if (!guard || ::posix_spawn(&id, "/bin/sh", nullptr, &attributes,
                                const_cast<char**>(arguments), nullptr) != 0)
      return 1;
    int status = 0;
    ::waitpid(id, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGINT ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(InterruptDeferral, HearsSignalsWhileTheProcessGoesOn) {
  const ChildProcess child([] {
    const Result<InterruptGuard> guard = InterruptGuard::start();
    Gate heard;
    std::array<int, 2> signals = {};
    std::size_t count = 0;
    bool any_from_terminal = false;
    const InterruptDeferral deferral([&](int signal, bool from_terminal) {
      signals[count++ % 2] = signal;
      any_from_terminal = any_from_terminal || from_terminal;
      heard.open();
    });
    for (const int signal : {SIGTERM, SIGINT}) {
      ::kill(::getpid(), signal);
      if (!guard || !heard.wait())
        return 1;
    }
    return signals == std::array{SIGTERM, SIGINT} && !any_from_terminal ? 7 : 2;
  });
  EXPECT_EQ(child.wait(), 7);
}

TEST(InterruptDeferral, LeavesSignalsToTheGuardWhenItIsOver) {
  Gate ready;
  const ChildProcess child([&] {
    const Result<InterruptGuard> guard = InterruptGuard::start();
    {
      const InterruptDeferral deferral([](int, bool) {});
    }
    ready.open();
    for (;;)
      ::pause();
    return guard ? 0 : 1;
  });
  ready.only_wait();
  ASSERT_TRUE(ready.wait());
  ::kill(child.id(), SIGINT);
  EXPECT_EQ(child.wait(), 1000 + SIGINT);
}

}  // namespace
}  // namespace postflight
