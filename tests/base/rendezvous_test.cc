#include "base/rendezvous.h"

#include "base/child_process.h"
#include "base/fake_clock.h"
#include "base/test_files.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

using namespace std::chrono_literals;

TEST(FolderRendezvous, PassesAValueToAnotherProcess) {
  const TemporaryFolder folder = scratch_folder();
  PatientClock clock;
  const ChildProcess child([&] {
    FolderRendezvous here(folder.path(), clock);
    return here.await("greeting", 1h).value_or("") == "hello" ? 0 : 1;
  });
  FolderRendezvous there(folder.path(), clock);

  EXPECT_EQ(message_of(there.publish("greeting", "hello")), "no error");

  EXPECT_EQ(child.wait(), 0);
}

TEST(FolderRendezvous, GivesUpAfterTheLimit) {
  const TemporaryFolder folder = scratch_folder();
  FakeClock clock;
  FolderRendezvous rendezvous(folder.path(), clock);

  EXPECT_EQ(message_of(rendezvous.await("greeting", 90s)),
            (folder.path() / "greeting").string() +
                " did not appear within 1 min 30 s; the process that writes "
                "it may have exited, or uses a different folder");
  EXPECT_EQ(clock.now().time_since_epoch(), 90s);
}

TEST(FolderRendezvous, LooksOnceWhenThereIsNoTime) {
  const TemporaryFolder folder = scratch_folder();
  FakeClock clock;
  FolderRendezvous rendezvous(folder.path(), clock);
  ASSERT_EQ(message_of(rendezvous.publish("greeting", "hello")), "no error");

  EXPECT_EQ(rendezvous.await("greeting", -1s).value_or(""), "hello");
}

TEST(FolderRendezvous, TakesAKeyBack) {
  const TemporaryFolder folder = scratch_folder();
  FakeClock clock;
  FolderRendezvous rendezvous(folder.path(), clock);
  ASSERT_EQ(message_of(rendezvous.publish("greeting", "hello")), "no error");

  rendezvous.withdraw("greeting");

  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderRendezvous, RefusesFilesThatAreNotItsOwn) {
  const TemporaryFolder folder = scratch_folder();
  FakeClock clock;
  FolderRendezvous rendezvous(folder.path(), clock);
  write_file(folder.path() / "greeting", std::string(70'000, 'x'));

  EXPECT_EQ(message_of(rendezvous.await("greeting", 1s)),
            (folder.path() / "greeting").string() +
                " is not a rendezvous file: it has 70000 bytes");
}

}  // namespace
}  // namespace postflight
